/**
 * Devices in Chromium that report to a server: node test/devices.mjs SERVER DIGEST
 *
 * Standard input is a JSON list of positions, [latitude, longitude] of one device each. Every
 * device has a ledger of its own in IndexedDB, fetches the document by its digest, reports once and
 * uploads. What all passes did together is printed as JSON.
 */

import { text } from "node:stream/consumers";

import { inTabs, Pages, withBrowser, withProfile } from "./support/browser.mjs";

const [server, digest] = process.argv.slice(2);
const pages = await Pages.open();
pages.positions = await text(process.stdin);
try {
  const url = pages.url("devices", { server, digest });
  const [done] = await withProfile((profile) =>
    withBrowser(profile, (browser) => inTabs(pages, browser, [url])),
  );
  console.log(JSON.stringify(done));
} finally {
  pages.close();
}
