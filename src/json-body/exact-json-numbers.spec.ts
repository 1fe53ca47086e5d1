import fc from 'fast-check';
import { parseExactJson, type ExactObject } from './exact-json.js';

/** The parts of any JSON number. */
const number = fc.record({
  sign: fc.constantFrom('', '-'),
  whole: fc.oneof(
    fc.constant('0'),
    fc.bigInt({ min: 1n, max: 10n ** 25n }).map(String),
    fc.bigInt({ min: 2n ** 63n - 3n, max: 2n ** 63n + 3n }).map(String),
  ),
  fraction: fc.oneof(fc.constant(''), fc.stringMatching(/^[0-9]{1,25}$/), fc.stringMatching(/^0{1,30}$/)),
  exponent: fc.oneof(fc.constant(undefined), fc.integer({ min: -45, max: 45 })),
  e: fc.constantFrom('e', 'E'),
  plus: fc.constantFrom('', '+'),
});

test('Reads an integer of up to 19 digits exactly, and other numbers as JSON.parse does', () => {
  const property = fc.property(number, ({ sign, whole, fraction, exponent, e, plus }) => {
    const power = exponent === undefined ? '' : `${e}${exponent < 0 ? '' : plus}${exponent}`;
    const text = `${sign}${whole}${fraction && `.${fraction}`}${power}`;
    // The value is units / 10 ** below, without rounding.
    const below = BigInt(Math.max(0, fraction.length - (exponent ?? 0)));
    const units =
      BigInt(sign + whole + fraction) * 10n ** BigInt(Math.max(0, (exponent ?? 0) - fraction.length));
    const isInteger = units % 10n ** below === 0n;
    const integer = units / 10n ** below;
    const read = (parseExactJson(`{"id":${text}}`) as ExactObject).get('id');
    expect(read).toBe(isInteger && `${integer}`.replace('-', '').length <= 19 ? integer : Number(text));
  });
  fc.assert(property, { numRuns: 5_000 });
});

/** An int64 and one of its many spellings. */
const spelled = fc
  .tuple(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.nat(30), fc.constantFrom('e', 'E', 'e+'))
  .chain(([integer, zeros, e]) => {
    const digits = `${integer}`.replace('-', '');
    const sign = integer < 0n ? '-' : '';
    const spellings = [
      `${integer}`,
      `${integer}.${'0'.repeat(zeros + 1)}`,
      `${integer}${integer === 0n ? '' : '0'.repeat(zeros)}e-${zeros}`,
      `${sign}${digits[0]}.${digits.slice(1)}0${e}${digits.length - 1}`,
      `${sign}0.${'0'.repeat(zeros)}${digits}${e}${zeros + digits.length}`,
    ];
    return fc.record({ integer: fc.constant(integer), text: fc.constantFrom(...spellings) });
  });

test('Two spellings of an integer are equal, and its neighbour differs', () => {
  const property = fc.property(spelled, ({ integer, text }) => {
    for (const twice of [`{"id":${text},"id":${integer}}`, `{"id":${integer},"x":0,"id":${text}}`])
      expect((parseExactJson(twice) as ExactObject).get('id')).toBe(integer);
    expect(() => parseExactJson(`{"id":${text},"id":${integer + 1n}}`)).toThrow('appears twice');
  });
  fc.assert(property, { numRuns: 2_000 });
});
