/**
 * Device: what an app holds.
 *
 * It is installed once, when the user agrees to take part, and opened from then on. It takes part
 * in collections and series that the app pins by their digest; every report is debited from its
 * ledger before it is handed out; and a reading of the position has a name, so that asking again
 * for the same one gives the same report and never a second draw.
 */

import { Collection, type Expected } from "./collection.js";
import { type ByteSource, checkedSource } from "./entropy.js";
import { CollectionError, NotAskedError, ParameterError } from "./errors.js";
import { LONGEST_JOINED, parse } from "./json.js";
import { accountOf, type Caps, type Debit, type Joinable, Ledger } from "./ledger.js";
import { drawReport, Report } from "./report.js";
import { Sampler } from "./sampling.js";
import { Series, SERIES_SCHEMA } from "./series.js";
import type { Store } from "./store.js";
import { microEpsilons, optionsOf, unicodeText } from "./validate.js";

/** What a device takes part in, ready to draw. */
interface Task {
  readonly what: Collection | Series;
  readonly sampler: Sampler;
  readonly debit: Debit;
  readonly windows: readonly number[]; // those that it answers, of a series
}

/** A source of random bytes of the app's own, where the platform has none. */
export interface Options {
  bytes?: ByteSource | undefined;
}

/** The one object that an app needs: made by `Device.install`, later by `Device.open`. */
export class Device extends Ledger {
  private readonly tasks = new Map<string, Task>();

  /**
   * Make the device's ledger: once, on the user's own act of agreeing, and never on a page's load.
   *
   * `capEpsilon` is what the device may spend over all collections for as long as the store lives,
   * 0.000001 to 1000000; `collectionCapEpsilon` what on any one, by default all of it.
   *
   * @throws ParameterError where a cap breaks its rule.
   * @throws LedgerError where there is a ledger already, or none can be made.
   */
  static async install(store: Store, options: Caps & Options): Promise<Device> {
    const device = new Device(store, checkedSource(optionsOf("options", options).bytes));
    await device.create(options);
    return device;
  }

  /**
   * Open the device that was installed in a store, and check all that it holds.
   *
   * @throws LedgerError where there is none, or it is damaged. Stop reporting then, and do not
   *     install anew without the user's act: that would refill the budget.
   */
  static async open(store: Store, options: Options = {}): Promise<Device> {
    const device = new Device(store, checkedSource(optionsOf("options", options).bytes));
    await device.verify();
    return device;
  }

  /**
   * Take part in a collection or series, and return it; joining again changes nothing.
   *
   * The document has at most 2^22 characters, from whichever source. Any other than that of the
   * `digest` is refused, and one whose report costs more than `maxEpsilon`. Of a series this
   * draws which windows the device answers.
   *
   * @throws CollectionError where the document is malformed, another one, or not private.
   */
  async join(document: string, pins: Required<Expected>): Promise<Collection | Series> {
    const { digest, maxEpsilon } = optionsOf("pins", pins);
    unicodeText("digest", digest);
    microEpsilons("maxEpsilon", maxEpsilon);
    const what = read(document, { digest, maxEpsilon });
    await this.keep(what.digest, what.toJson(), () =>
      what instanceof Series ? what.choose(this.bytes) : [],
    );
    return what;
  }

  /**
   * Return the report for a position in degrees (y, x on a plane grid), written down before.
   *
   * `event` is the app's name for this reading of the position, such as "visit 41": the same event
   * gives the stored report again, whatever the position is by then. Without one each call is a
   * reading of its own. The windows of a series name the readings themselves.
   *
   * @throws PositionError where the position is not a finite latitude and longitude.
   * @throws AlreadyGivenError where the report of this event was acknowledged or discarded.
   * @throws NotAskedError where the device does not answer the window that is open now.
   * @throws BudgetError where the device has given what it may give; nothing was drawn.
   * @throws CollectionError where the device has not joined this collection.
   * @throws LedgerError where the spending could not be written down; nothing is handed out.
   */
  async report(
    collection: Joinable,
    lat: number,
    lon: number,
    options: { event?: string | undefined } = {},
  ): Promise<Report> {
    const { what, sampler, debit, windows } = await this.task(collection);
    let target = what;
    let { event } = optionsOf("options", options);
    if (event !== undefined) unicodeText("event", event);
    if (target instanceof Series) {
      if (event !== undefined) {
        throw new ParameterError("event must be left out: the window of a series names it");
      }
      const window = openWindow(target, windows);
      if (window === null) {
        throw new NotAskedError("no window that this device answers is open: ask isAsked first");
      }
      event = eventOf(window);
      target = target.collection(window);
    }
    const { grid, digest } = target;
    const cell = grid.cell(lat, lon);
    const body = await this.spend(debit, event, () => {
      const report = drawReport(sampler, digest, cell, this.bytes);
      return [report.id, report.toBody()];
    });
    return Report.fromJson(body);
  }

  /**
   * Tell whether the device would answer now: a window of its own, not yet answered, in budget.
   *
   * Ask before reading a position: at all other times none is needed.
   */
  async isAsked(series: Joinable): Promise<boolean> {
    const { what, debit, windows } = await this.series(series);
    const window = openWindow(what, windows);
    return window !== null && this.wouldDraw(debit, eventOf(window));
  }

  /** Return the windows of a series that this device answers. Keep them on the device. */
  async windows(series: Joinable): Promise<readonly number[]> {
    return (await this.series(series)).windows;
  }

  private async task(collection: Joinable): Promise<Task> {
    const digest = accountOf(collection);
    const known = this.tasks.get(digest);
    if (known) return known;
    const joined = await this.joined(digest);
    if (!joined) throw new CollectionError("the device has not joined this: call join first");
    const what = read(joined.document, { digest });
    const { microEpsilon } = what;
    const times = what instanceof Series ? what.answers : what.maxReports;
    const task = {
      what,
      sampler: new Sampler(what.table),
      debit: { account: digest, microEpsilon, limit: microEpsilon * times },
      windows: joined.windows,
    };
    this.tasks.set(digest, task);
    return task;
  }

  private async series(series: Joinable): Promise<Task & { what: Series }> {
    const task = await this.task(series);
    const { what } = task;
    if (what instanceof Series) return { ...task, what };
    throw new ParameterError("series must be a series, got a collection");
  }
}

function read(document: string, expected: Expected): Collection | Series {
  const { schema } = parse(document, "the document", LONGEST_JOINED);
  const kind = schema === SERIES_SCHEMA ? Series : Collection;
  return kind.fromJson(document, expected);
}

/** Return the window that is open by the device's clock, if it is one of those. */
function openWindow(series: Series, answered: readonly number[]): number | null {
  const window = series.windowAt(Date.now() / 1000);
  return window !== null && answered.indexOf(window) >= 0 ? window : null;
}

function eventOf(window: number): string {
  return `window ${window}`;
}
