/** Compiles the client: dist/ for apps, and build/ for the tests alone. */

import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Point imports of dist/ at what was compiled to ES5, for an engine without classes. */
const toEs5 = {
  name: "es5",
  setup({ onResolve }) {
    onResolve({ filter: /\/dist\// }, ({ path }) => ({
      path: `${ROOT}/build/es5/${path.split("/dist/")[1]}`,
    }));
  },
};

/** The app of the README, as it is printed there. */
const readme = {
  name: "readme",
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^readme$/ }, () => ({ path: `${ROOT}/README.md`, namespace: "readme" }));
    onResolve({ filter: /^ldpspatial-client$/ }, () => ({ path: `${ROOT}/dist/index.js` }));
    onLoad({ filter: /./, namespace: "readme" }, ({ path }) => ({
      contents: /<!-- app -->\n```js\n([^]*?)```/.exec(readFileSync(path, "utf8"))[1],
      resolveDir: ROOT,
    }));
  },
};

function compile(project) {
  execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "--project", project], {
    cwd: ROOT,
    stdio: "inherit",
  });
}

rmSync(`${ROOT}/dist`, { recursive: true, force: true });
rmSync(`${ROOT}/build`, { recursive: true, force: true });
compile("tsconfig.json");
compile("tsconfig.es5.json");

const shared = { absWorkingDir: ROOT, bundle: true, logLevel: "warning" };
await build({
  ...shared,
  entryPoints: ["test/support/app.mjs", "test/support/draws.mjs"],
  outdir: "build/packed",
  format: "esm",
  target: "es2022",
  minify: true,
});
await build({
  ...shared,
  entryPoints: ["test/hermes/script.mjs"],
  outfile: "build/hermes.js",
  format: "iife",
  target: "es2016",
  plugins: [toEs5],
});
await build({
  ...shared,
  entryPoints: ["test/browser/pages.mjs"],
  outfile: "build/browser.js",
  format: "iife",
  target: "es2022",
  plugins: [readme],
});
// The pages of the service; a copy of it lies in ldpspatial/service/pages, so that pip is enough.
await build({
  ...shared,
  stdin: {
    contents: `export {
      AlreadyGivenError, BudgetError, Collection, Device, httpsSender, IndexedDbStore, Randomizer,
      Uploader,
    } from "./dist/index.js";`,
    resolveDir: ROOT,
  },
  outfile: "build/pages-client.js",
  format: "esm",
  target: "es2022",
  minify: true,
});
