/**
 * Reads the JSON object of a request without losing anything.
 *
 * `JSON.parse` would lose digits of a number (RFC 8259 section 6 leaves the precision open) and repeated names (section
 * 4). It would also build members that are ignored, at 30 times the body's size. So the text is checked here without
 * building anything, and a value is read when it is asked for.
 */

/** Deeper nesting is refused. RFC 8259 section 9 allows a parser such a limit. */
export const MAX_DEPTH = 1_000;

/**
 * A JSON value. An integer of at most 19 digits is a `bigint`, any other number a `number`. An array or object is
 * empty: only its type is read.
 */
export type ExactValue =
  string | bigint | number | boolean | null | readonly [] | Readonly<Record<string, never>>;

/** The text is not JSON, or two readers might read it differently. The message repeats nothing of the text. */
export class MalformedJsonError extends Error {
  override name = 'MalformedJsonError' as const;

  /** @param member the repeated name, if that is the fault. */
  constructor(
    message: string,
    readonly member?: string,
  ) {
    super(message);
  }
}

/** The JSON texts of an object's members by name, in a Map because a member may be called `__proto__`. */
export class ExactObject {
  readonly #sources = new Map<string, string>();
  /** The first values of repeated names. Each is read once: it may be long, and its name may be repeated often. */
  readonly #repeated = new Map<string, ExactValue>();

  get(name: string): ExactValue | undefined {
    const source = this.#sources.get(name);
    return source === undefined ? undefined : readValue(source);
  }

  /** @throws {MalformedJsonError} if the name already has another value. */
  add(name: string, source: string): void {
    const first = this.#sources.get(name);
    if (first === undefined) this.#sources.set(name, source);
    else if (first !== source && !this.#isFirstValue(name, first, readValue(source)))
      throw new MalformedJsonError('appears twice in the body with different values', name);
  }

  /** Values that are spelled differently are equal if they are the same string or the same integer. */
  #isFirstValue(name: string, first: string, value: ExactValue): boolean {
    if (typeof value !== 'string' && typeof value !== 'bigint') return false;
    let firstValue = this.#repeated.get(name);
    if (firstValue === undefined) this.#repeated.set(name, (firstValue = readValue(first)));
    return value === firstValue;
  }
}

/**
 * @param text a JSON text.
 * @returns the members of an object, or any other value.
 * @throws {MalformedJsonError} if it is not JSON, is nested deeper than MAX_DEPTH, or repeats a name with another
 *   value. Only the outermost object's names are compared: what lies deeper belongs to members that are ignored.
 */
export function parseExactJson(text: string): ExactObject | ExactValue {
  const scanner = new Scanner(text);
  const start = scanner.skipSpace(0);
  if (start === text.length) throw new MalformedJsonError('The body is empty; it must be a JSON object');
  const members = text[start] === '{' ? new ExactObject() : undefined;
  const end = members === undefined ? scanner.skipValue(start) : readMembers(scanner, start, members);
  if (scanner.skipSpace(end) !== text.length) throw malformed();
  return members ?? readValue(text.slice(start, end));
}

const malformed = () => new MalformedJsonError('The body is not valid JSON');

function readMembers(scanner: Scanner, start: number, members: ExactObject): number {
  const { text } = scanner;
  let at = scanner.skipSpace(start + 1);
  if (text[at] === '}') return at + 1;
  for (;;) {
    const nameEnd = scanner.skipString(at);
    const valueStart = scanner.skipColon(nameEnd);
    const valueEnd = scanner.skipValue(valueStart);
    members.add(JSON.parse(text.slice(at, nameEnd)) as string, text.slice(valueStart, valueEnd));
    at = scanner.skipSpace(valueEnd);
    if (text[at] === '}') return at + 1;
    if (text[at] !== ',') throw malformed();
    at = scanner.skipSpace(at + 1);
  }
}

// The grammar of RFC 8259, sections 6 and 7. None of these can backtrack.
const UNESCAPED = /[ !#-[\]-\uffff]*/y;
const ESCAPE_AND_UNESCAPED = /\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})[ !#-[\]-\uffff]*/y;
const NUMBER_OR_WORD = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/** Each `skip…` takes the index where a token must start and returns the index after it. */
class Scanner {
  constructor(readonly text: string) {}

  skipSpace(at: number): number {
    const { text } = this;
    for (;;) {
      const code = text.charCodeAt(at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return at;
      at++;
    }
  }

  skipColon(at: number): number {
    at = this.skipSpace(at);
    if (this.text[at] !== ':') throw malformed();
    return this.skipSpace(at + 1);
  }

  /** Does not recurse, so that no nesting can exhaust the stack. */
  skipValue(at: number): number {
    const { text } = this;
    /** What closes each array and object that is open. */
    const closers: string[] = [];
    for (;;) {
      // A value starts here.
      const first = text[at];
      if (first === '[' || first === '{') {
        if (closers.length === MAX_DEPTH)
          throw new MalformedJsonError(`The body is nested deeper than ${MAX_DEPTH} levels`);
        const closer = first === '[' ? ']' : '}';
        closers.push(closer);
        at = this.skipSpace(at + 1);
        if (text[at] !== closer) {
          if (first === '{') at = this.skipColon(this.skipString(at));
          continue;
        }
      } else {
        at = first === '"' ? this.skipString(at) : this.#skip(NUMBER_OR_WORD, at);
        if (closers.length === 0) return at;
        at = this.skipSpace(at);
      }
      // A value has ended here. Close the arrays and objects that end with it.
      while (text[at] === closers.at(-1)) {
        closers.pop();
        if (closers.length === 0) return at + 1;
        at = this.skipSpace(at + 1);
      }
      if (text[at] !== ',') throw malformed();
      at = this.skipSpace(at + 1);
      if (closers.at(-1) === '}') at = this.skipColon(this.skipString(at));
    }
  }

  skipString(at: number): number {
    const { text } = this;
    if (text[at] !== '"') throw malformed();
    at = this.#skip(UNESCAPED, at + 1);
    while (text[at] !== '"') at = this.#skip(ESCAPE_AND_UNESCAPED, at);
    return at + 1;
  }

  #skip(expression: RegExp, at: number): number {
    expression.lastIndex = at;
    if (!expression.test(this.text)) throw malformed();
    return expression.lastIndex;
  }
}

/** @param source one JSON value. */
function readValue(source: string): ExactValue {
  const first = source[0] as string;
  if (first === '[') return [];
  if (first === '{') return {};
  // A string is copied: a slice of the body would keep the whole body in memory for as long as the plant waits.
  if ('"tfn'.includes(first)) return JSON.parse(source) as string | boolean | null;
  return exactNumber(source);
}

const PLAIN_INTEGER = /^-?\d{1,19}$/;
const NUMBER_PARTS = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/**
 * JSON Schema's `integer` is about the value, however it is written: 71, 71.0 and 7.1e1 are the same.
 *
 * @param source a JSON number.
 * @returns its exact value if that is an integer of at most 19 digits, else the nearest double.
 */
function exactNumber(source: string): bigint | number {
  if (PLAIN_INTEGER.test(source)) return BigInt(source);
  const parts = NUMBER_PARTS.exec(source);
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = parts ?? [];
  const digits = whole + fraction;
  let first = 0;
  while (first < digits.length && digits[first] === '0') first++;
  if (first === digits.length) return 0n;
  let last = digits.length;
  while (digits[last - 1] === '0') last--;
  // The value is the digits from first to last, times ten to this power.
  const power = Number(exponent) - fraction.length + (digits.length - last);
  if (power < 0 || last - first + power > 19) return Number(source);
  return BigInt(sign + digits.slice(first, last) + '0'.repeat(power));
}
