// SPDX-License-Identifier: Apache-2.0
// What speedscope makes of files: node speedscope_import.cjs BUNDLE FILE...
//
// BUNDLE is the program of the npm package, made for browsers: it runs here without its page, up to where it would draw
// it, and its own import of a file is called. Prints a JSON list: of each file its profiles, each with its name, unit,
// total weight and the weight of every stack, frames joined by ";".
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [, , bundle, ...files] = process.argv;
const program = fs.readFileSync(bundle, "utf8");
const importer = /loadExample=.{0,200}?return await (\w+)\(/.exec(program)[1];
const code = program.slice(0, program.lastIndexOf("console.log(`speedscope v")) + `globalThis.importText=${importer};})();`;

// Replaces everything that a browser has and the import does not need.
const anything = new Proxy(function () {}, {
  get: (_, key) => (key === Symbol.toPrimitive ? () => "" : anything),
  apply: () => anything,
  construct: () => anything,
  set: () => true,
});
const nothing = () => {};
const context = vm.createContext({
  console: { log: nothing, warn: nothing, error: nothing, time: nothing, timeEnd: nothing },
  document: anything,
  navigator: anything,
  self: anything,
  TextDecoder,
  TextEncoder,
  setTimeout,
});
context.window = new Proxy(context, { get: (target, key) => (key in target ? target[key] : anything) });
vm.runInContext(code, context);

function stacksOf(profile) {
  const stacks = {};
  const open = [];
  profile.forEachCall(
    (node, at) => {
      if (open.length > 0) open[open.length - 1].inside -= at;
      open.push({ frame: node.frame, at, inside: 0 });
    },
    (_, at) => {
      const name = open.map((call) => call.frame.name).join(";");
      const call = open.pop();
      const own = at - call.at - call.inside;
      if (open.length > 0) open[open.length - 1].inside += at;
      if (own > 0) stacks[name] = (stacks[name] || 0) + own;
    },
  );
  return stacks;
}

async function main() {
  const all = [];
  for (const file of files) {
    const group = await context.importText(path.basename(file), fs.readFileSync(file, "utf8"));
    all.push(
      group.profiles.map((profile) => ({
        name: profile.getName(),
        unit: profile.getWeightUnit(),
        total: profile.getTotalWeight(),
        stacks: stacksOf(profile),
      })),
    );
  }
  console.log(JSON.stringify(all));
}
main();
