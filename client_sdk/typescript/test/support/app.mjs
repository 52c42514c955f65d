/** What an app takes into its page: the size of this is measured. */

export { Device, httpsSender, IndexedDbStore, Uploader } from "../../dist/index.js";
