// SPDX-License-Identifier: Apache-2.0
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import js from "@eslint/js";
import tseslint from "typescript-eslint";

/** The rules of a folder with TypeScript, named by the URL of its configuration; editors/vscode has the same. */
export const rulesOf = (url) => tseslint.config(
	{ ignores: ["dist/", "node_modules/"] },
	js.configs.recommended,
	{
		files: ["src/**/*.{ts,tsx}", "tests/**/*.ts", "*.ts"],
		extends: [...tseslint.configs.strictTypeChecked, ...tseslint.configs.stylisticTypeChecked],
		languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: dirname(fileURLToPath(url)) } },
		rules: {
			"@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true, allowBoolean: true }],
			"@typescript-eslint/no-non-null-assertion": "off", // indices that were just checked
			"@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
			eqeqeq: "error",
		},
	},
	{ files: ["*.mjs", "*.js"], languageOptions: { globals: { console: "readonly", process: "readonly" } } },
);

export default rulesOf(import.meta.url);
