/**
 * Reads the JSON object that a request carries, without losing anything of it.
 *
 * `JSON.parse` is the judge of the syntax and the reader of strings; what it loses is read from the text itself:
 * the digits of a number (RFC 8259 section 6 leaves precision to us) and names that stand twice (section 4).
 */

/** Nesting beyond this is refused; RFC 8259 section 9 allows a parser such a limit. */
export const MAX_DEPTH = 1_000;

/** A JSON value. A number that is an integer of at most 19 digits is a `bigint`, any other a `number`. */
export type ExactValue = string | bigint | number | boolean | null | object;

/** The members of one JSON object by name, in a Map since a member may be called `__proto__`. */
export type ExactObject = ReadonlyMap<string, ExactValue>;

/** The text is no JSON, or not JSON that two readers are sure to read alike. Its message repeats nothing of the text. */
export class MalformedJsonError extends Error {
  override name = 'MalformedJsonError' as const;

  /** @param member the name that stands twice, where that is the fault. */
  constructor(
    message: string,
    readonly member?: string,
  ) {
    super(message);
  }
}

/**
 * @param text a JSON text.
 * @returns the members where it is an object, and any other JSON value as it is.
 * @throws {MalformedJsonError} where it is not JSON, is nested deeper than MAX_DEPTH, or has a name twice with two
 *   values. Names are compared in the outermost object only: what lies deeper belongs to members that are ignored.
 */
export function parseExactJson(text: string): ExactObject | Exclude<ExactValue, object> | unknown[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new MalformedJsonError(
      text.trim() === '' ? 'The body is empty; it must be a JSON object' : 'The body is not valid JSON',
    );
  }
  if (parsed === null || typeof parsed !== 'object' || Array.isArray(parsed)) {
    if (Array.isArray(parsed)) skipValue(text, skipSpace(text, 0));
    return parsed as unknown[] | Exclude<ExactValue, object>;
  }
  return readMembers(text, parsed as Record<string, unknown>);
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const SPACE = 0x20;

/** Walks the outermost object of a text that is known to be JSON; each `skip…` returns the index after what it skips. */
function readMembers(text: string, parsed: Record<string, unknown>): ExactObject {
  const members = new Map<string, ExactValue>();
  const firsts = new Map<string, FirstValue>();
  let at = skipSpace(text, skipSpace(text, 0) + 1);
  while (text.charCodeAt(at) !== CLOSE_BRACE) {
    const nameEnd = skipString(text, at);
    const name = readString(text, at, nameEnd);
    const valueStart = skipSpace(text, skipSpace(text, nameEnd) + 1);
    const valueEnd = skipValue(text, valueStart);
    const source = text.slice(valueStart, valueEnd);
    const first = firsts.get(name);
    if (first === undefined) {
      firsts.set(name, { source, value: undefined });
      const value = parsed[name];
      members.set(name, typeof value === 'number' ? exactNumber(source) : (value as ExactValue));
    } else if (!isSameValue(first, source)) {
      throw new MalformedJsonError('stands twice in the body with two values', name);
    }
    at = skipSpace(text, valueEnd);
    if (text.charCodeAt(at) === COMMA) at = skipSpace(text, at + 1);
  }
  return members;
}

function skipSpace(text: string, at: number): number {
  while (text.charCodeAt(at) <= SPACE) at++;
  return at;
}

function skipString(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); ; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return end + 1;
  }
}

function skipValue(text: string, at: number): number {
  let depth = 1;
  do {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = skipString(text, at);
    } else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      if (depth++ > MAX_DEPTH)
        throw new MalformedJsonError(`The body is nested deeper than ${MAX_DEPTH} levels`);
      at++;
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) {
      depth--;
      at++;
    } else if (depth === 1) {
      return skipScalar(text, at);
    } else {
      at++;
    }
  } while (depth > 1);
  return at;
}

/** A number, true, false or null. */
function skipScalar(text: string, at: number): number {
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET || code <= SPACE) break;
  }
  return at;
}

function readString(text: string, start: number, end: number): string {
  const content = text.slice(start + 1, end - 1);
  return content.includes('\\') ? (JSON.parse(text.slice(start, end)) as string) : content;
}

/** What stood first under a name. Its value is read when the name comes again, and once: it may be long, and come often. */
interface FirstValue {
  source: string;
  value: ExactValue | undefined;
}

/** Two values are one where they are spelled alike, or are the same string or the same integer. */
function isSameValue(first: FirstValue, source: string): boolean {
  if (first.source === source) return true;
  first.value ??= readScalar(first.source);
  const isComparable = typeof first.value === 'string' || typeof first.value === 'bigint';
  return isComparable && first.value === readScalar(source);
}

function readScalar(source: string): ExactValue {
  const value = JSON.parse(source) as ExactValue;
  return typeof value === 'number' ? exactNumber(source) : value;
}

const PLAIN_INTEGER = /^-?\d{1,19}$/;
const NUMBER_PARTS = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/**
 * JSON Schema's integer is a value and not a spelling: 71, 71.0 and 7.1e1 are one.
 *
 * @param source a JSON number.
 * @returns its exact value where that is an integer of at most 19 digits, else the nearest double.
 */
export function exactNumber(source: string): bigint | number {
  if (PLAIN_INTEGER.test(source)) return BigInt(source);
  const parts = NUMBER_PARTS.exec(source);
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = parts ?? [];
  const digits = whole + fraction;
  let first = 0;
  while (first < digits.length && digits[first] === '0') first++;
  if (first === digits.length) return 0n;
  let last = digits.length;
  while (digits[last - 1] === '0') last--;
  // The value is the digits from first to last, times ten to the power of:
  const power = Number(exponent) - fraction.length + (digits.length - last);
  if (power < 0 || last - first + power > 19) return Number(source);
  return BigInt(sign + digits.slice(first, last) + '0'.repeat(power));
}
