// SPDX-License-Identifier: Apache-2.0
/** Writes the traces of four ranks of a job to a folder. */
export function writeRanks(folder: string): void;
