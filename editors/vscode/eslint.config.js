// SPDX-License-Identifier: Apache-2.0
import { rulesOf } from "../../web/eslint.config.js";

export default rulesOf(import.meta.url);
