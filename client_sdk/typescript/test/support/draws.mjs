/** What a page takes that shows draws and keeps no account: the size of this is measured. */

export { Collection, Randomizer } from "../../dist/index.js";
