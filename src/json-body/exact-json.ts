/**
 * Reads the JSON object that a request carries, without losing anything of it.
 *
 * `JSON.parse` would lose the digits of a number (RFC 8259 section 6 leaves precision to us) and names that stand twice
 * (section 4), and it builds all that a body holds: the members that are ignored too, at 30 times the body's size. So
 * the text is checked here, building nothing, and a value is read where it is asked for.
 */

/** Nesting beyond this is refused; RFC 8259 section 9 allows a parser such a limit. */
export const MAX_DEPTH = 1_000;

/**
 * A JSON value. A number that is an integer of at most 19 digits is a `bigint`, any other a `number`; of an array or an
 * object there is nothing but its type.
 */
export type ExactValue =
  string | bigint | number | boolean | null | readonly [] | Readonly<Record<string, never>>;

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

/** The members of one JSON object, as their JSON texts by name; in a Map since a member may be called `__proto__`. */
export class ExactObject {
  readonly #sources = new Map<string, string>();
  /** The values of names that came again, each read once: it may be long, and come often. */
  readonly #repeated = new Map<string, ExactValue>();

  get(name: string): ExactValue | undefined {
    const source = this.#sources.get(name);
    return source === undefined ? undefined : readValue(source);
  }

  /** @throws {MalformedJsonError} where the name has another value already. */
  add(name: string, source: string): void {
    const first = this.#sources.get(name);
    if (first === undefined) this.#sources.set(name, source);
    else if (first !== source && !this.#isFirstValue(name, first, readValue(source)))
      throw new MalformedJsonError('stands twice in the body with two values', name);
  }

  /** Two values that are spelled differently are one where they are the same string or the same integer. */
  #isFirstValue(name: string, first: string, value: ExactValue): boolean {
    if (typeof value !== 'string' && typeof value !== 'bigint') return false;
    let firstValue = this.#repeated.get(name);
    if (firstValue === undefined) this.#repeated.set(name, (firstValue = readValue(first)));
    return value === firstValue;
  }
}

/**
 * @param text a JSON text.
 * @returns the members where it is an object, and any other JSON value as it is.
 * @throws {MalformedJsonError} where it is not JSON, is nested deeper than MAX_DEPTH, or has a name twice with two
 *   values. Names are compared in the outermost object only: what lies deeper belongs to members that are ignored.
 */
export function parseExactJson(text: string): ExactObject | ExactValue {
  const start = skipSpace(text, 0);
  if (start === text.length) throw new MalformedJsonError('The body is empty; it must be a JSON object');
  const members = text.charCodeAt(start) === OPEN_BRACE ? new ExactObject() : undefined;
  const end = members === undefined ? skipValue(text, start) : readMembers(text, start, members);
  if (skipSpace(text, end) !== text.length) throw malformed();
  return members ?? readValue(text.slice(start, end));
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const UPPER_E = 0x45;
const LOWER_E = 0x65;
const LOWER_F = 0x66;
const LOWER_N = 0x6e;
const LOWER_T = 0x74;
const LOWER_U = 0x75;
const OPEN_BRACKET = 0x5b;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const TAB = 0x09;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;

const malformed = () => new MalformedJsonError('The body is not valid JSON');

// Each `skip…` takes the index at which what it skips has to start and returns the index behind it; beyond the end of
// the text charCodeAt is NaN, which is like no character.

function readMembers(text: string, start: number, members: ExactObject): number {
  let at = skipSpace(text, start + 1);
  if (text.charCodeAt(at) === CLOSE_BRACE) return at + 1;
  for (;;) {
    const nameEnd = skipString(text, at);
    const valueStart = skipColon(text, nameEnd);
    const valueEnd = skipValue(text, valueStart);
    members.add(readString(text.slice(at, nameEnd)), text.slice(valueStart, valueEnd));
    at = skipSpace(text, valueEnd);
    const code = text.charCodeAt(at);
    if (code === CLOSE_BRACE) return at + 1;
    if (code !== COMMA) throw malformed();
    at = skipSpace(text, at + 1);
  }
}

function skipSpace(text: string, at: number): number {
  for (;;) {
    const code = text.charCodeAt(at);
    if (code !== SPACE && code !== LINE_FEED && code !== CARRIAGE_RETURN && code !== TAB) return at;
    at++;
  }
}

function skipColon(text: string, at: number): number {
  at = skipSpace(text, at);
  if (text.charCodeAt(at) !== COLON) throw malformed();
  return skipSpace(text, at + 1);
}

/** Without recursion, so that no nesting can exhaust the stack. */
function skipValue(text: string, at: number): number {
  let code = text.charCodeAt(at);
  if (code !== OPEN_BRACKET && code !== OPEN_BRACE) return skipScalar(text, at);
  /** What closes each array and object that is open. */
  const closers: number[] = [];
  for (;;) {
    // Here a value starts.
    if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      if (closers.length === MAX_DEPTH)
        throw new MalformedJsonError(`The body is nested deeper than ${MAX_DEPTH} levels`);
      // In ASCII each closing one stands two behind its opening one.
      closers.push(code + 2);
      at = skipSpace(text, at + 1);
      if (text.charCodeAt(at) !== code + 2) {
        if (code === OPEN_BRACE) at = skipColon(text, skipString(text, at));
        code = text.charCodeAt(at);
        continue;
      }
    } else {
      at = skipSpace(text, skipScalar(text, at));
    }
    // Here one has ended: whatever ends with it is left, up to the next.
    while (text.charCodeAt(at) === closers.at(-1)) {
      closers.pop();
      if (closers.length === 0) return at + 1;
      at = skipSpace(text, at + 1);
    }
    if (text.charCodeAt(at) !== COMMA) throw malformed();
    at = skipSpace(text, at + 1);
    if (closers.at(-1) === CLOSE_BRACE) at = skipColon(text, skipString(text, at));
    code = text.charCodeAt(at);
  }
}

function skipScalar(text: string, at: number): number {
  switch (text.charCodeAt(at)) {
    case QUOTE:
      return skipString(text, at);
    case LOWER_T:
      return skipWord(text, at, 'true');
    case LOWER_F:
      return skipWord(text, at, 'false');
    case LOWER_N:
      return skipWord(text, at, 'null');
    default:
      return skipNumber(text, at);
  }
}

function skipWord(text: string, at: number, word: string): number {
  if (!text.startsWith(word, at)) throw malformed();
  return at + word.length;
}

const ESCAPES = new Set(Array.from('"\\/bfnrt', (escape) => escape.charCodeAt(0)));
const FOUR_HEX_DIGITS = /[0-9A-Fa-f]{4}/y;

function skipString(text: string, at: number): number {
  if (text.charCodeAt(at) !== QUOTE) throw malformed();
  for (;;) {
    const code = text.charCodeAt(++at);
    if (code === QUOTE) return at + 1;
    // False for NaN too.
    if (!(code >= SPACE)) throw malformed();
    if (code === BACKSLASH) {
      const escape = text.charCodeAt(++at);
      if (escape === LOWER_U) {
        FOUR_HEX_DIGITS.lastIndex = at + 1;
        if (!FOUR_HEX_DIGITS.test(text)) throw malformed();
        at += 4;
      } else if (!ESCAPES.has(escape)) {
        throw malformed();
      }
    }
  }
}

function skipNumber(text: string, at: number): number {
  if (text.charCodeAt(at) === MINUS) at++;
  at = text.charCodeAt(at) === ZERO ? at + 1 : skipDigits(text, at);
  if (text.charCodeAt(at) === POINT) at = skipDigits(text, at + 1);
  const code = text.charCodeAt(at);
  if (code !== LOWER_E && code !== UPPER_E) return at;
  const sign = text.charCodeAt(at + 1);
  return skipDigits(text, sign === MINUS || sign === PLUS ? at + 2 : at + 1);
}

/** One digit or more. */
function skipDigits(text: string, start: number): number {
  let at = start;
  for (;;) {
    const code = text.charCodeAt(at);
    if (!(code >= ZERO && code <= NINE)) break;
    at++;
  }
  if (at === start) throw malformed();
  return at;
}

/** @param source one JSON value. */
function readValue(source: string): ExactValue {
  switch (source.charCodeAt(0)) {
    case QUOTE:
      return readString(source);
    case OPEN_BRACKET:
      return [];
    case OPEN_BRACE:
      return {};
    case LOWER_T:
      return true;
    case LOWER_F:
      return false;
    case LOWER_N:
      return null;
    default:
      return exactNumber(source);
  }
}

function readString(source: string): string {
  return source.includes('\\') ? (JSON.parse(source) as string) : source.slice(1, -1);
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
