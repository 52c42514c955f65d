/** The device side of ldpspatial: one randomised grid cell per position, under local DP. */

export { Collection, type Expected } from "./collection.js";
export { Device } from "./device.js";
export type { ByteSource } from "./entropy.js";
export * from "./errors.js";
export { type Cell, Grid, type GridKind } from "./grid.js";
export { IndexedDbStore } from "./indexeddb.js";
export type { Caps, Joinable } from "./ledger.js";
export { Randomizer } from "./randomizer.js";
export { Report } from "./report.js";
export { type Answer, answerOfHttp, DELIVERED, httpsSender, LATER, type Send } from "./sending.js";
export { Series } from "./series.js";
export type { Rows, Store } from "./store.js";
export { ResponseTable } from "./table.js";
export { type Pass, type Stop, Uploader, type UploaderOptions } from "./uploader.js";
