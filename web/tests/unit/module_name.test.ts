// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { lastParts } from "../../src/format/module_name";

test("paths in narrow boxes keep their last parts", () => {
	expect([20, 10, 5, 2].map((room) => lastParts("blocks.11.mlp.0", room))).toEqual(["blocks.11.mlp.0", "11.mlp.0", "mlp.0", "0"]);
	expect(lastParts("encoder", 3)).toBe("encoder");
	expect(lastParts("aten::add.Tensor(1)", 3)).toBe("aten::add.Tensor(1)");
	expect(lastParts("train.py(3): step", 3)).toBe("train.py(3): step");
});
