/**
 * Uploader: from the device's ledger to the server, one report a request (docs/protocol.md,
 * section 13).
 *
 * What the network and the server see must not depend on a position, and should not tie the
 * reports of a device together. So the stored bytes are sent, shuffled, each after a random delay
 * that is drawn before anything of a report is looked at. A report leaves the outbox when the
 * server has it, or says that it will never count it; anything else is tried again later.
 */

import { Device } from "./device.js";
import { below, type ByteSource, checkedSource } from "./entropy.js";
import { LedgerUnavailableError, ParameterError } from "./errors.js";
import type { Pause } from "./ledger.js";
import { checkedAnswer, LONGEST_WAIT, type Refusal, type Send } from "./sending.js";
import { numberWithin, optionsOf, wholeNumber } from "./validate.js";

const FIRST_BACK_OFF = 30; // seconds
const LONGEST_BACK_OFF = 6 * 3600;
const MOST_FAILURES = 20;
const IDLE = 900; // how often to look for new reports

/** What one pass over the outbox did. */
export interface Pass {
  /** Reports that the server has. */
  delivered: number;
  /** Reports that it will never count, by reason; they were discarded. */
  refused: { [reason in Refusal]?: number };
  /** Reports for which the outbox had no room; they were discarded. */
  dropped: number;
  /** Whether no attempt failed. */
  isComplete: boolean;
  /** Seconds after which the next pass is due. */
  waitSeconds: number;
}

/** What ends a pass: an AbortSignal, for one. */
export interface Stop {
  readonly aborted: boolean;
  addEventListener(kind: "abort", listener: () => void): void;
  removeEventListener(kind: "abort", listener: () => void): void;
}

export interface UploaderOptions {
  /** Each report is sent after a time between 0 and this, drawn uniformly; 0 to 86400, 60. */
  maxDelaySeconds?: number;
  /** Reports in one pass at most; 1 to 10000, 100. */
  batch?: number;
  /** Reports that may wait, the newest are discarded beyond; 1 to 1000000, 1000. */
  outbox?: number;
  /** How to wait a number of seconds, or until it is stopped. */
  wait?: (seconds: number, stop?: Stop) => Promise<void>;
  /** A clock in seconds since 1970. */
  now?: () => number;
  /** A source of random bytes, where the platform has none. */
  bytes?: ByteSource;
}

/** Sends what waits in a device's outbox; how long it has to wait is kept in the ledger. */
export class Uploader {
  private readonly maxDelay: number;
  private readonly batch: number;
  private readonly outbox: number;
  private readonly wait: (seconds: number, stop?: Stop) => Promise<void>;
  private readonly now: () => number;
  private readonly bytes: ByteSource;
  private unwritten: Pause | undefined; // where the ledger could not take it

  /** @throws ParameterError where an argument breaks its rule. */
  constructor(
    private readonly device: Device,
    private readonly send: Send,
    options: UploaderOptions = {},
  ) {
    if (!(device instanceof Device)) throw new ParameterError("device must be a Device");
    if (typeof send !== "function") throw new ParameterError("send must be a function");
    optionsOf("options", options);
    this.maxDelay = numberWithin("maxDelaySeconds", options.maxDelaySeconds ?? 60, 0, 86_400);
    this.batch = wholeNumber("batch", options.batch ?? 100, 1, 10_000);
    this.outbox = wholeNumber("outbox", options.outbox ?? 1000, 1, 1_000_000);
    this.wait = options.wait ?? sleep;
    this.now = options.now ?? (() => Date.now() / 1000);
    this.bytes = checkedSource(options.bytes);
  }

  /**
   * Make one pass and return what it did; nothing is sent before its time has come.
   *
   * `stop` ends it, at once where it waits, and after the report that is being sent. What was
   * delivered or refused is written down at once.
   *
   * @throws LedgerError where the outbox cannot be read or written.
   * @throws ParameterError where `send` did not return an Answer; and what `send` throws.
   */
  async runOnce(stop?: Stop): Promise<Pass> {
    checkStop(stop);
    try {
      return await this.pass(stop);
    } catch (error) {
      // Or an app that catches it would come back at once.
      if ((await this.left()) === 0) await this.failed(0);
      throw error;
    }
  }

  /** Make passes until `stop` is aborted; a ledger that cannot be used just now stops nothing. */
  async run(stop?: Stop): Promise<void> {
    checkStop(stop);
    while (!stop?.aborted) {
      let seconds: number;
      try {
        seconds = (await this.runOnce(stop)).waitSeconds;
      } catch (error) {
        if (!(error instanceof LedgerUnavailableError)) throw error;
        seconds = await this.left();
      }
      await this.wait(seconds, stop);
    }
  }

  private async pass(stop?: Stop): Promise<Pass> {
    const { device } = this;
    const dropped = await device.discardNewest(this.outbox);
    const done: Pass = { delivered: 0, refused: {}, dropped, isComplete: true, waitSeconds: 0 };
    const left = await this.left();
    if (left > 0) return { ...done, isComplete: false, waitSeconds: left };

    const waiting = await device.outbox();
    // Where nothing can be written, what arrived would be sent for ever.
    if (waiting.length > 0) await device.pause((held) => held ?? NO_PAUSE);
    this.shuffle(waiting);
    for (const [id, body] of waiting.slice(0, this.batch)) {
      await this.wait(this.uniform(this.maxDelay), stop);
      if (stop?.aborted) return done;
      if (!(await device.isPending(id))) continue; // another uploader, or the app, was quicker
      const { isDelivered, refusal, retryAfterSeconds } = checkedAnswer(await this.send(body));
      if (refusal) {
        await device.discard([id]);
        done.refused[refusal] = (done.refused[refusal] ?? 0) + 1;
      } else if (isDelivered) {
        await device.acknowledge([id]);
        done.delivered++;
      } else {
        const waitSeconds = await this.failed(retryAfterSeconds);
        return { ...done, isComplete: false, waitSeconds };
      }
    }
    await this.write(() => undefined);
    if (waiting.length <= this.batch) done.waitSeconds = IDLE / 2 + this.uniform(IDLE / 2);
    return done;
  }

  /** Return the seconds that are still to wait after a failure. */
  private async left(): Promise<number> {
    const now = this.now();
    let left = 0;
    await this.write((held) => {
      const length = held ? held.notBefore - held.since : 0;
      // What no uploader would have written must not silence the device for ever.
      if (!held || !(length > 0 && length <= LONGEST_WAIT + LONGEST_BACK_OFF)) return held;
      // The clock was turned back: how long ago it began nobody knows, so it begins again.
      const pause = now < held.since ? { ...held, since: now, notBefore: now + length } : held;
      left = Math.max(pause.notBefore - now, 0);
      return pause;
    });
    return left;
  }

  /** Write down one more failure; return the time until the next pass. */
  private async failed(asked: number): Promise<number> {
    let seconds = 0;
    await this.write((held) => {
      const failures = held?.failures ?? 0;
      // Drawn below the bound, or devices that failed together would come back together.
      const longest = Math.min(FIRST_BACK_OFF * 2 ** failures, LONGEST_BACK_OFF);
      seconds = asked + this.uniform(longest);
      const since = this.now();
      const next = Math.min(failures + 1, MOST_FAILURES);
      return { failures: next, since, notBefore: since + seconds };
    });
    return seconds;
  }

  /** Change the pause of all uploaders, or one's own where the ledger cannot be written. */
  private async write(change: (held: Pause | undefined) => Pause | undefined): Promise<void> {
    const { unwritten } = this;
    try {
      await this.device.pause((held) => change(unwritten ?? held));
      this.unwritten = undefined;
    } catch {
      this.unwritten = change(unwritten);
    }
  }

  private uniform(high: number): number {
    return (below(2 ** 52, this.bytes) / 2 ** 52) * high;
  }

  /** Put what waits in random order: neither that of drawing nor that of the ids. */
  private shuffle(waiting: unknown[]): void {
    for (let i = waiting.length - 1; i > 0; i--) {
      const k = below(i + 1, this.bytes);
      const held = waiting[i];
      waiting[i] = waiting[k];
      waiting[k] = held;
    }
  }
}

const NO_PAUSE: Pause = { failures: 0, since: 0, notBefore: 0 };

function checkStop(stop: Stop | undefined): void {
  if (stop !== undefined && typeof stop?.addEventListener !== "function") {
    throw new ParameterError("stop must be an AbortSignal");
  }
}

function sleep(seconds: number, stop?: Stop): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      stop?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, seconds * 1000);
    if (stop?.aborted) end();
    else stop?.addEventListener("abort", end);
  });
}
