/** What carries one report to a server, and what its answer means: docs/protocol.md, 13. */

import { ParameterError } from "./errors.js";
import { parse } from "./json.js";
import { numberWithin, optionsOf, shown, wholeNumber } from "./validate.js";

const PROBLEM = "urn:ldpspatial:problem:";
const REFUSALS = ["closed", "foreign", "malformed", "conflict"] as const;
const LONGEST_ANSWER = 2 ** 16; // code points
const HTTP_DATE = /^[a-z]{3,9}, \d\d([ -])[a-z]{3}\1\d{2,4} \d\d:\d\d:\d\d gmt$/i;
export const LONGEST_WAIT = 86_400; // seconds; a server may ask for a day and not for a year

/** Why a server will never count a report. */
export type Refusal = (typeof REFUSALS)[number];

/** What became of one report. */
export interface Answer {
  /** The server has it durably, now or from an earlier attempt. */
  readonly isDelivered: boolean;
  /** The server will never count it. */
  readonly refusal: Refusal | null;
  /** Seconds that the server wants to be left alone, where neither holds. */
  readonly retryAfterSeconds: number;
}

/** Takes the body of one report, 192 ASCII characters. */
export type Send = (body: string) => Promise<Answer>;

export const DELIVERED: Answer = { isDelivered: true, refusal: null, retryAfterSeconds: 0 };
export const LATER: Answer = { isDelivered: false, refusal: null, retryAfterSeconds: 0 };

/**
 * Return what an HTTP response means: 2xx is delivered; 4xx is final only where the body is a
 * problem document, in strict JSON, whose type is registered; everything else is temporary.
 *
 * @throws ParameterError where `status` is not a whole number from 100 to 999.
 */
export function answerOfHttp(status: number, retryAfter?: string | null, body = ""): Answer {
  wholeNumber("status", status, 100, 999);
  if (status >= 200 && status < 300) return DELIVERED;
  const refusal = status >= 400 && status < 500 ? problemOf(body) : null;
  return { ...LATER, refusal, retryAfterSeconds: refusal ? 0 : secondsOf(retryAfter ?? "") };
}

/** Return an answer that is valid: with another one a report could be lost. */
export function checkedAnswer(answer: Answer): Answer {
  const { isDelivered, refusal, retryAfterSeconds } = Object(answer) as Answer;
  const isKnown = refusal === null || REFUSALS.indexOf(refusal) >= 0;
  if (typeof isDelivered !== "boolean" || !isKnown || (isDelivered && refusal !== null)) {
    throw new ParameterError("send must return an Answer: isDelivered, refusal, retryAfterSeconds");
  }
  const asked = numberWithin("retryAfterSeconds", retryAfterSeconds, 0, Infinity);
  return { isDelivered, refusal, retryAfterSeconds: Math.min(asked, LONGEST_WAIT) };
}

/**
 * Return a function that posts one report with `fetch`: without cookies, referrer and redirection.
 *
 * `url` starts with https, or is http on this machine for tests; all of an answer must be there
 * within `timeoutSeconds`. A browser adds its own headers (Origin, User-Agent, Accept-Language).
 *
 * @throws ParameterError where the address or the time breaks its rule.
 */
export function httpsSender(url: string, options: { timeoutSeconds?: number } = {}): Send {
  const allowed = /^(https:\/\/|http:\/\/(localhost|127\.0\.0\.1|\[::1])[:/])[!-?A-~]+$/;
  if (typeof url !== "string" || !allowed.test(url)) {
    throw new ParameterError(`url must start with https:// and name no user, got ${shown(url)}`);
  }
  const { timeoutSeconds = 30 } = optionsOf("options", options);
  const timeout = numberWithin("timeoutSeconds", timeoutSeconds, 0.001, 3600);

  return async (body) => {
    const control = new AbortController();
    const timer = setTimeout(() => control.abort(), timeout * 1000);
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: { "Content-Type": "application/x-ndjson" },
        body,
        cache: "no-store",
        credentials: "omit",
        redirect: "error", // it would send the report to whom the app did not name
        referrerPolicy: "no-referrer",
        signal: control.signal,
      });
      const isRead = response.status >= 400 && response.status < 500;
      const text = isRead ? await response.text() : "";
      return answerOfHttp(response.status, response.headers.get("Retry-After"), text);
    } catch {
      return LATER; // of a connection nothing more is told
    } finally {
      clearTimeout(timer);
      control.abort(); // what is left of the answer
    }
  };
}

/** Return the refusal that a problem document tells; null where it is not strict JSON. */
function problemOf(body: string): Refusal | null {
  try {
    const { type } = parse(body, "the answer", LONGEST_ANSWER);
    // The mark stands for bytes that are not UTF-8.
    if (/\ufffd/.test(body)) return null;
    return REFUSALS.filter((reason) => type === PROBLEM + reason)[0] ?? null;
  } catch {
    return null;
  }
}

/** Return what Retry-After asks for: seconds, or a date by the device's clock. */
function secondsOf(retryAfter: string): number {
  const text = retryAfter.trim();
  const isDate = HTTP_DATE.test(text);
  const seconds = isDate ? (Date.parse(text) - Date.now()) / 1000 : /^\d+$/.test(text) && +text;
  return Math.min(Math.max(seconds || 0, 0), LONGEST_WAIT);
}
