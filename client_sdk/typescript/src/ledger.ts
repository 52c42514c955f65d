/**
 * What this device has spent, kept as long as its store is (docs/protocol.md, section 8).
 *
 * A report and its spending are written in one transaction, and the report is handed out only when
 * the store has confirmed it. So no report leaves uncounted; at worst one is counted and waits.
 * The store holds whole micro-epsilons, keyed hashes of readings, what was joined, and the reports
 * not yet acknowledged: no clock that a budget depends on, no name of the user, no position.
 */

import type { ByteSource } from "./entropy.js";
import {
  AlreadyGivenError,
  BudgetError,
  ClientError,
  LedgerError,
  LedgerUnavailableError,
  ParameterError,
} from "./errors.js";
import { eventName, KEY_BYTES } from "./events.js";
import { digestOf } from "./sha256.js";
import type { Rows, Store } from "./store.js";
import { fromHex, toHex } from "./utf8.js";
import { MICRO, microEpsilons, unicodeText, wholeNumber } from "./validate.js";

const MAX_CAP = 1_000_000; // epsilon
const SEAL = 16; // hexadecimal digits of a row's checksum
const PENDING = "pending/";
const EVENT = "event/";
const JOINED = "joined/";
const PAUSE = "pause";
const HEAD = "ledger/1"; // another version has another name

/** What a device may spend over all collections and all time, and on any one of them. */
export interface Caps {
  capEpsilon: number;
  collectionCapEpsilon?: number | undefined;
}

/** A collection or series that was joined, or its digest. */
export type Joinable = { readonly digest: string } | string;

/** What one report costs, and the account that it is counted under. */
export interface Debit {
  /** Digest of the collection or series. */
  account: string;
  microEpsilon: number;
  /** What the collection or series lets one device spend on it, in micro-epsilons. */
  limit: number;
}

/** Until when nothing is sent after a failure: for all uploaders of a ledger. */
export interface Pause {
  failures: number; // in a row
  since: number; // seconds since 1970
  notBefore: number;
}

interface Head {
  cap: number;
  collectionCap: number;
  key: string; // of the names of readings
  spent: { [account: string]: number };
  drawn: number;
  waiting: number;
  discarded: number;
  events: number;
}

interface Waiting {
  body: string;
  event: string | null; // the name of its row
  drawn: number; // how many were drawn before
}

/** What was joined: a document, and of a series the windows that this device answers. */
export interface Joined {
  document: string;
  windows: number[];
}

/** The sealed rows of one transaction, and the head, which is written back with every change. */
class Books {
  constructor(
    private readonly rows: Rows,
    readonly head: Head,
  ) {}

  async get<T>(name: string): Promise<T | undefined> {
    const text = await this.rows.get(name);
    return text === undefined ? text : unsealed<T>(name, text);
  }

  async list<T>(prefix: string): Promise<[name: string, value: T][]> {
    const found = await this.rows.list(prefix);
    return found.map(([name, text]) => [name.slice(prefix.length), unsealed<T>(name, text)]);
  }

  /** Put a row, or remove one that is undefined; and the head, which may have changed with it. */
  put(name: string, value: unknown): void {
    if (value === undefined) this.rows.remove(name);
    else this.rows.put(name, sealed(name, value));
    this.rows.put(HEAD, sealed(HEAD, this.head));
  }

  spent(account: string): number {
    return this.head.spent[account] ?? 0;
  }

  /** Return what is spent on all accounts. */
  all(): number {
    return Object.values(this.head.spent).reduce((sum, spent) => sum + spent, 0);
  }

  /** Return what is left for an account under the caps and a limit, 0 if nothing is. */
  left(account: string, limit: number): number {
    const { cap, collectionCap } = this.head;
    const here = this.spent(account);
    return Math.max(Math.min(cap - this.all(), collectionCap - here, limit - here), 0);
  }

  /** Return the name of the row of an event. */
  eventRow(account: string, event: string): string {
    return EVENT + toHex(eventName(fromHex(this.head.key), account, event));
  }

  /** Delete reports that wait; their events record only that they were given. */
  async forget(ids: readonly string[], isDiscarded: boolean): Promise<void> {
    for (const id of ids) {
      const held = await this.get<Waiting>(PENDING + id);
      if (!held) continue;
      this.head.waiting--;
      if (isDiscarded) this.head.discarded++;
      this.put(PENDING + id, undefined);
      if (held.event) this.put(held.event, "");
    }
  }
}

/** The record of spending of one device, in a store that pages and processes may share. */
export class Ledger {
  /** @internal */
  constructor(
    private readonly store: Store,
    protected readonly bytes: ByteSource,
  ) {
    if (typeof store?.transact !== "function") throw new ParameterError("store must be a Store");
  }

  /** Return id and body of all reports not yet acknowledged, in the order of the ids. */
  outbox(): Promise<[id: string, body: string][]> {
    return this.change(async (books) => {
      const waiting = await books.list<Waiting>(PENDING);
      return waiting.map(([id, { body }]) => [id, body]);
    });
  }

  /** Tell whether a report is not yet acknowledged or discarded. */
  async isPending(id: string): Promise<boolean> {
    unicodeText("id", id);
    return this.change(async (books) => !!(await books.get(PENDING + id)));
  }

  /** Return how many reports are not yet acknowledged. */
  waiting(): Promise<number> {
    return this.change(async ({ head }) => head.waiting);
  }

  /** Return how many reports were discarded so far. */
  discarded(): Promise<number> {
    return this.change(async ({ head }) => head.discarded);
  }

  /** Forget reports that have arrived; their spending stays. */
  async acknowledge(ids: string | readonly string[]): Promise<void> {
    const all = textsOf(ids);
    return this.change((books) => books.forget(all, false));
  }

  /** Forget reports that are not to be sent again; their spending stays. */
  async discard(ids: string | readonly string[]): Promise<void> {
    const all = textsOf(ids);
    return this.change((books) => books.forget(all, true));
  }

  /** Discard what waits beyond `keep` reports, the newest first; return how many. */
  async discardNewest(keep: number): Promise<number> {
    wholeNumber("keep", keep, 0, 1e9);
    return this.change(async (books) => {
      const waiting = books.head.waiting > keep ? await books.list<Waiting>(PENDING) : [];
      const newest = waiting.sort(([, a], [, b]) => a.drawn - b.drawn).slice(keep);
      await books.forget(newest.map(([id]) => id), true);
      return newest.length;
    });
  }

  /** Return the micro-epsilons spent on a collection or series, or on all of them. */
  async spent(collection?: Joinable): Promise<number> {
    const account = collection === undefined ? undefined : accountOf(collection);
    return this.change(async (books) => (account ? books.spent(account) : books.all()));
  }

  /** Return the micro-epsilons left under the caps, for one collection or over all. */
  async remaining(collection?: Joinable): Promise<number> {
    const account = collection === undefined ? undefined : accountOf(collection);
    return this.change(async (books) => {
      return account ? books.left(account, Infinity) : books.head.cap - books.all();
    });
  }

  /**
   * @internal Return the pause after a failure that `change` makes of the one that is held.
   *
   * One pause for all uploaders of a ledger; undefined is none.
   */
  pause(change: (held: Pause | undefined) => Pause | undefined): Promise<void> {
    return this.change(async (books) => {
      books.put(PAUSE, change(await books.get<Pause>(PAUSE)));
    });
  }

  /** Make a new, unspent ledger: only when the user agrees to take part, never on opening. */
  protected async create(caps: Caps): Promise<void> {
    const cap = microEpsilons("capEpsilon", caps.capEpsilon, MAX_CAP);
    const ofOne = caps.collectionCapEpsilon ?? caps.capEpsilon;
    const collectionCap = microEpsilons("collectionCapEpsilon", ofOne, MAX_CAP);
    if (collectionCap > cap) {
      throw new ParameterError("collectionCapEpsilon must not exceed capEpsilon");
    }
    const key = toHex(this.bytes(KEY_BYTES));
    const counts = { drawn: 0, waiting: 0, discarded: 0, events: 0 };
    await this.transact(true, async (rows) => {
      // Whatever is there, of another version too: installing over it would refill the budget.
      if ((await rows.list("")).length > 0) throw new LedgerError("there is a ledger: open it");
      const head: Head = { cap, collectionCap, key, spent: {}, ...counts };
      rows.put(HEAD, sealed(HEAD, head));
    });
  }

  /** Read all of it and check that nothing is damaged or missing. */
  protected verify(): Promise<void> {
    return this.change(async (books) => {
      const waiting = (await books.list(PENDING)).length;
      const events = (await books.list(EVENT)).length;
      await books.list(JOINED);
      const { head } = books;
      if (waiting !== head.waiting || events !== head.events || books.all() > head.cap) damaged();
    });
  }

  /**
   * Debit one report, draw it, write both down, and only then return its body.
   *
   * `draw` returns id and body. An event gives the report that waits for it, and is never drawn
   * for twice. Throws a BudgetError where a cap would be exceeded, with nothing drawn.
   */
  protected spend(
    { account, microEpsilon, limit }: Debit,
    event: string | undefined,
    draw: () => [id: string, body: string],
  ): Promise<string> {
    return this.change(async (books) => {
      const { head } = books;
      const name = event === undefined ? null : books.eventRow(account, event);
      const given = name && (await books.get<string>(name));
      if (given === "") throw new AlreadyGivenError("the report of this event was dealt with");
      if (given) return (await books.get<Waiting>(PENDING + given))?.body ?? damaged();

      const left = books.left(account, limit) / MICRO;
      const asked = microEpsilon / MICRO;
      if (asked > left) throw new BudgetError(`${asked} epsilon asked, ${left} left: no report`);
      const [id, body] = draw();
      head.spent[account] = books.spent(account) + microEpsilon;
      head.waiting++;
      if (name) {
        head.events++;
        books.put(name, id);
      }
      books.put(PENDING + id, { body, event: name, drawn: head.drawn++ });
      return body;
    });
  }

  /** Tell whether `spend` would draw: for a new event, and with budget for it. */
  protected wouldDraw({ account, microEpsilon, limit }: Debit, event: string): Promise<boolean> {
    return this.change(async (books) => {
      const given = await books.get(books.eventRow(account, event));
      return given === undefined && microEpsilon <= books.left(account, limit);
    });
  }

  /** Keep what the device takes part in; `choose` draws the windows, once. */
  protected keep(digest: string, document: string, choose: () => number[]): Promise<void> {
    return this.change(async (books) => {
      const name = JOINED + digest;
      if (!(await books.get(name))) books.put(name, { document, windows: choose() });
    });
  }

  protected joined(digest: string): Promise<Joined | undefined> {
    return this.change((books) => books.get<Joined>(JOINED + digest));
  }

  private change<T>(work: (books: Books) => Promise<T>): Promise<T> {
    return this.transact(false, async (rows) => {
      const text = await rows.get(HEAD);
      if (text === undefined) throw new LedgerError("no ledger: never installed, or deleted");
      return work(new Books(rows, unsealed<Head>(HEAD, text)));
    });
  }

  /** Run a transaction of the store; what is not our own error is one of the store. */
  private async transact<T>(isNew: boolean, work: (rows: Rows) => Promise<T>): Promise<T> {
    try {
      return await this.store.transact(work, isNew);
    } catch (error) {
      if (error instanceof ClientError) throw error;
      const { name } = Object(error) as Error;
      throw new LedgerUnavailableError(`the ledger cannot be used just now: ${name}`);
    }
  }
}

/** Return the digest that spending is counted under. */
export function accountOf(collection: Joinable): string {
  const digest = typeof collection === "object" ? collection?.digest : collection;
  if (typeof digest === "string" && /^[0-9a-f]{64}$/.test(digest)) return digest;
  // Not repeated: it may be a position by mistake.
  throw new ParameterError("collection must be a Collection, a Series or the digest of one");
}

function textsOf(ids: string | readonly string[]): string[] {
  return (Array.isArray(ids) ? ids : [ids]).map((id) => unicodeText("id", id));
}

function sealed(name: string, value: unknown): string {
  const text = JSON.stringify(value);
  return seal(name, text) + text;
}

function unsealed<T>(name: string, row: string): T {
  const text = `${row}`.slice(SEAL);
  return seal(name, text) + text === row ? JSON.parse(text) : damaged();
}

/** A checksum, which stops accidents; not a person who edits the store. */
function seal(name: string, text: string): string {
  return digestOf(name + text).slice(0, SEAL);
}

function damaged(): never {
  throw new LedgerError("the ledger is damaged: stop reporting, and do not install anew");
}
