import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { ExactObject, MalformedJsonError, MAX_DEPTH, parseExactJson } from './exact-json.js';

/** JSON texts, damaged ones, and sequences of tokens. */
const value = fc.json({ maxDepth: 5 });
const name = fc.string({
  unit: fc.constantFrom('a', 'b', '__proto__', '\\n', '\\u0061', '\\ud800', 'é'),
  maxLength: 2,
});
const object = fc
  .array(fc.tuple(name, value, fc.constantFrom('', ' ', '\n\t', '\r')))
  .map(
    (members) =>
      `{${members.map(([name, value, gap]) => `${gap}"${name}"${gap}:${gap}${value}${gap}`).join(',')}}`,
  );
const tokens = fc
  .array(
    fc.constantFrom(
      ...'{}[]:,"-+.eE01 \t\n\\/'.split(''),
      'true',
      'nul',
      '\\u00',
      '\\ud83d',
      '"a"',
      '-0',
      '1e5',
      '\u0000',
      '\u00a0',
      'é',
    ),
  )
  .map((parts) => parts.join(''));
const damaged = fc
  .tuple(
    fc.oneof(value, object),
    fc.nat(),
    fc.nat(2),
    fc.constantFrom(...'{}[]:,"\\0-.e \u0001'.split(''), ''),
  )
  .map(([text, place, lost, put]) => {
    const at = place % (text.length + 1);
    return text.slice(0, at) + put + text.slice(at + lost);
  });

test('Accepts the texts that JSON.parse accepts, and reads the same members', () => {
  const property = fc.property(fc.oneof(value, object, tokens, damaged), (text) => {
    let parsed: unknown;
    try {
      parsed = JSON.parse(text);
    } catch {
      expect(() => parseExactJson(text)).toThrow(MalformedJsonError);
      return;
    }
    let read: unknown;
    try {
      read = parseExactJson(text);
    } catch (error) {
      // A member with two values is the only difference: JSON.parse takes the last one.
      expect((error as MalformedJsonError).member).toBeDefined();
      return;
    }
    if (!(read instanceof ExactObject)) {
      expect(likeness(read)).toEqual(likeness(parsed));
      return;
    }
    for (const [name, value] of Object.entries(parsed as object))
      expect(likeness(read.get(name))).toEqual(likeness(value));
    expect(read.get('not there')).toBeUndefined();
  });
  fc.assert(property, { numRuns: 5_000 });
});

/** parseExactJson() reads only the type of an array or object, and JSON.parse() has no bigint. */
function likeness(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (Object.is(value, -0)) return 0;
  return typeof value === 'object' && value !== null ? { isArray: Array.isArray(value) } : value;
}

test.each([
  ['arrays', '[', ']'],
  ['objects', '{"a":', '}'],
  ['both', '[{"a":', '}]'],
])('Accepts %s up to the limit of nesting, and no deeper', (_, open, close) => {
  const levels = MAX_DEPTH / (open.startsWith('[{') ? 2 : 1);
  const nested = (levels: number) => `{"x":${open.repeat(levels)}1${close.repeat(levels)}}`;
  expect(parseExactJson(nested(levels))).toBeInstanceOf(ExactObject);
  expect(() => parseExactJson(nested(levels + 1))).toThrow(/nested deeper than 1000 levels/);
  // The error is neither one of syntax nor a stack overflow.
  expect(() => parseExactJson(open.repeat(500_000))).toThrow(/nested deeper than 1000 levels/);
});

test('Reads a value once, however long it is and however often its member is repeated', () => {
  const text = `{"x":1.${'0'.repeat(500_000)}${',"x":1'.repeat(80_000)}}`;
  const begun = process.cpuUsage();
  expect((parseExactJson(text) as ExactObject).get('x')).toBe(1n);
  // If it were read each time, this would take minutes of processor time.
  expect(process.cpuUsage(begun).user).toBeLessThan(5_000_000);
});

test('A string that was read does not keep its whole text in memory', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const used = () => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = used();
  const names = Array.from({ length: 50 }, (_, index) => {
    const text = `{"name":"a name of some length ${index}","ignored":"${'x'.repeat(1_000_000)}"}`;
    return (parseExactJson(text) as ExactObject).get('name');
  });
  // The texts are 50 MB.
  expect(used() - before).toBeLessThan(10_000_000);
  expect(names).toHaveLength(50);
});
