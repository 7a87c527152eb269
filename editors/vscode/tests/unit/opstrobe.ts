// SPDX-License-Identifier: Apache-2.0
//
// The real command: from the environment, else from a build in the tree, else from the PATH.
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "../../src/command";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "../../../..");
export const opstrobe: Command = {
	path: process.env.OPSTROBE ?? [join(root, "build/dev/src/cli/opstrobe")].find((path) => existsSync(path)) ?? "opstrobe",
	environment: {},
};
export const trace = join(root, "web/tests/traces/train.pt.trace.json.gz");
