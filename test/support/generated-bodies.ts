import fc from 'fast-check';
import type { Bytes } from './requests.js';

/** A plant, and one of the many JSON texts that mean it. */
export interface Said {
  plant: { id: bigint; name: string; tag: string | undefined };
  /** The members as JSON texts. A name may occur twice with the same value. */
  members: [name: string, value: string][];
  /** The white space between the tokens. */
  gap: string;
}

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const near = (centre: bigint) => fc.bigInt(centre - 3n, centre + 3n);
const id = fc
  .oneof(
    { weight: 4, arbitrary: fc.bigInt(INT64_MIN, INT64_MAX) },
    ...[INT64_MIN, -(2n ** 53n), -(2n ** 31n), 0n, 2n ** 31n, 2n ** 53n, 10n ** 18n, INT64_MAX].map(near),
  )
  .filter((value) => value >= INT64_MIN && value <= INT64_MAX);

const numberStyle = fc.record({
  exponent: fc.constantFrom('', 'e', 'E', 'e0', 'E00'),
  zeros: fc.nat(5),
  point: fc.nat(24),
  isNegativeZero: fc.boolean(),
});
type NumberStyle = typeof numberStyle extends fc.Arbitrary<infer T> ? T : never;

/** To JSON Schema, 71, 71.000 and 0.00710e4 are the same integer. */
function writeInteger(value: bigint, { exponent, zeros, point, isNegativeZero }: NumberStyle): string {
  const sign = value < 0n || (value === 0n && isNegativeZero) ? '-' : '';
  const digits = (value < 0n ? -value : value).toString();
  const fraction = '0'.repeat(zeros);
  if (exponent === '') return `${sign}${digits}${zeros > 0 ? '.' : ''}${fraction}`;
  if (value === 0n) return `${sign}0.${fraction}0${exponent}${point}`;
  const padded = digits + fraction;
  // The point goes after this many digits, or after a zero if there are none.
  const whole = padded.slice(0, point % (padded.length + 1));
  const rest = padded.slice(whole.length);
  const power = digits.length - whole.length;
  return `${sign}${whole || '0'}${rest && '.'}${rest}${exponent[0]}${power < 0 ? '-' : point % 2 ? '+' : ''}${exponent.slice(1)}${Math.abs(power)}`;
}

const TELLING_TEXTS = [
  '',
  ' ',
  '\u007f\u0080\u00a0\ufeff\u2028\ufffd\uffff',
  'A\u030a \u212b \u00c5',
  '\u202e\u0645\u0631\u062d\u0628\u0627',
  '\u{1F469}\u200d\u{1F33E}\u{10FFFF}\ud7ff\ue000',
  '\\u0000 \\ud800 \\"',
  "'; DROP TABLE plants; -- $1 %s \\x00 {} NULL",
  '__proto__',
];
const character = fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).filter((text) => text !== '\0');
const styledText = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.array(fc.record({ character, style: fc.constantFrom('raw', 'escaped', 'ESCAPED') })),
  },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(...TELLING_TEXTS)
      .map((text) => Array.from(text, (character) => ({ character, style: 'raw' }))),
  },
  {
    weight: 1,
    arbitrary: fc.array(fc.record({ character, style: fc.constant('raw') }), {
      minLength: 1_000,
      maxLength: 4_000,
    }),
  },
);
type StyledText = typeof styledText extends fc.Arbitrary<infer T> ? T : never;

const textOf = (styled: StyledText) => styled.map(({ character }) => character).join('');

function writeText(styled: StyledText): string {
  const written = styled.map(({ character, style }) => {
    if (style === 'raw') return JSON.stringify(character).slice(1, -1);
    const escaped = character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join('');
    return style === 'escaped' ? escaped : escaped.toUpperCase().replaceAll('\\U', '\\u');
  });
  return `"${written.join('')}"`;
}

const TELLING_NAMES = [
  '',
  'tag ',
  ...'__proto__ constructor toString then toJSON Id NAME access_token'.split(' '),
];
const TELLING_VALUES = String.raw`"\u0000" "\ud800" 1e400 -0 null {"id":1,"id":2} [[[[[[]]]]]]`.split(' ');
const extraMembers = fc
  .uniqueArray(
    fc.tuple(
      fc.oneof(fc.constantFrom(...TELLING_NAMES), fc.string({ unit: 'binary' })),
      fc.oneof(fc.constantFrom(...TELLING_VALUES), fc.json({ maxDepth: 3 })),
    ),
    { selector: ([name]) => name, maxLength: 4 },
  )
  .map((members) => members.filter(([name]) => !['id', 'name', 'tag'].includes(name)));

/** Any plant that the contract allows, written in any way that JSON allows. */
export const validPlant: fc.Arbitrary<Said> = fc
  .record({
    id,
    name: styledText,
    tag: fc.option(styledText, { nil: undefined }),
    numbers: fc.tuple(numberStyle, numberStyle),
    memberNames: fc.constantFrom('raw', 'escaped'),
    extra: extraMembers,
    twice: fc.array(fc.constantFrom('id', 'name', 'tag'), { maxLength: 2 }),
    order: fc.array(fc.nat(), { minLength: 9, maxLength: 9 }),
    gap: fc.constantFrom('', ' ', '\t', '\r\n  '),
  })
  .map(({ id, name, tag, numbers, memberNames, extra, twice, order, gap }) => {
    const write = (text: string) =>
      writeText(Array.from(text, (character) => ({ character, style: memberNames })));
    const own: [string, string][] = [
      [write('id'), writeInteger(id, numbers[0])],
      [write('name'), writeText(name)],
    ];
    if (tag !== undefined) own.push([write('tag'), writeText(tag)]);
    for (const member of twice) {
      if (member === 'id') own.push(['"id"', writeInteger(id, numbers[1])]);
      if (member === 'name') own.push(['"name"', JSON.stringify(textOf(name))]);
      if (member === 'tag' && tag !== undefined) own.push(['"tag"', JSON.stringify(textOf(tag))]);
    }
    const all = [...own, ...extra.map(([name, value]): [string, string] => [JSON.stringify(name), value])];
    const members = all
      .map((member, index) => ({ member, key: order[index] ?? 0 }))
      .sort((a, b) => a.key - b.key)
      .map(({ member }) => member);
    return { plant: { id, name: textOf(name), tag: tag && textOf(tag) }, members, gap };
  });

export function writeObject({ members, gap }: Pick<Said, 'members' | 'gap'>): string {
  const written = members.map(([name, value]) => `${gap}${name}${gap}:${gap}${value}${gap}`);
  return `${gap}{${written.join(',') || gap}}${gap}`;
}

const nameOf = (name: string) => JSON.parse(name) as string;

/** Replaces all members of a name by one; without a value, removes them. */
function withMember(said: Said, name: string, value: string | undefined): string {
  const members = said.members.filter(([written]) => nameOf(written) !== name);
  if (value !== undefined) members.push([JSON.stringify(name), value]);
  return writeObject({ members, gap: said.gap });
}

/** Adds a member at the end. */
const withAnother = (said: Said, name: string, value: string) =>
  writeObject({ members: [...said.members, [name, value]], gap: said.gap });

const pick = <T>(from: readonly T[], n: number) => from[n % from.length] as T;
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

const WRONG_IDS =
  `null "71" true [71] {} "" 71.5 1e-1 0.1e0 1e19 1e400 -1e999999999 9223372036854775808 -9223372036854775809 92233720368547758070e0 9223372036854775807.5 ${'9'.repeat(400)}`.split(
    ' ',
  );
const WRONG_TEXTS =
  String.raw`null 1 false ["a"] {"name":"a"} "\u0000" "a\u0000b" "\ud800" "\udc00" "\ud83dx" "\udc00\ud800" "a\uDBFF"`.split(
    ' ',
  );
const WRONG_NUMBERS = '01 -01 +1 .5 1. - 1e 1e+ 1e1.0 0x10 1_0 1n NaN -Infinity ١'.split(' ');
const WRONG_STRINGS = [
  'a',
  "'a'",
  '"a',
  '"\\x41"',
  '"\\u12g4"',
  '"\\u123"',
  '"\\"',
  '"a\nb"',
  '"a\tb"',
  '"\u0001"',
  '"a" "b"',
  'undefined',
];
const NOT_UTF8 = [
  [0xff],
  [0xfe],
  [0x80],
  [0xc0, 0xaf],
  [0xe2, 0x82],
  [0xed, 0xa0, 0x80],
  [0xf4, 0x90, 0x80, 0x80],
  [0xf8, 0x88, 0x80, 0x80, 0x80],
];

/** Each writes a valid plant with one rule broken; the number chooses one of the ways to break it. */
const BREAKAGES: Record<string, (said: Said, n: number) => Bytes> = {
  'a member is missing': (said, n) => withMember(said, pick(['id', 'name'], n), undefined),
  'a member has another case': (said) =>
    withAnother({ ...said, members: said.members.filter(([name]) => nameOf(name) !== 'id') }, '"ID"', '1'),
  'the id is wrong': (said, n) => withMember(said, 'id', pick(WRONG_IDS, n)),
  'the name is wrong': (said, n) => withMember(said, 'name', pick(WRONG_TEXTS, n)),
  'the tag is wrong': (said, n) => withMember(said, 'tag', pick(WRONG_TEXTS, n)),
  'the id occurs twice': (said, n) =>
    withAnother(said, '"id"', pick([`${said.plant.id + 1n}`, 'null', `"${said.plant.id}"`], n)),
  'the name occurs twice': (said, n) =>
    withAnother(said, '"n\\u0061me"', pick([JSON.stringify(`${said.plant.name}.`), '1', '{}'], n)),
  'the tag occurs twice': (said, n) =>
    withAnother(
      said,
      '"tag"',
      pick([JSON.stringify(`${said.plant.tag}.`), 'null'], said.plant.tag === undefined ? 1 : n),
    ),
  'another member occurs twice': (said, n) =>
    withAnother(
      { ...said, members: [...said.members, ['"twice"', '1']] },
      '"twice"',
      pick(['2', '"1"', '[1]', 'null'], n),
    ),
  'a number is malformed': (said, n) => withAnother(said, '"number"', pick(WRONG_NUMBERS, n)),
  'a string is malformed': (said, n) => withAnother(said, '"string"', pick(WRONG_STRINGS, n)),
  'a name is malformed': (said, n) => withAnother(said, pick(WRONG_STRINGS, n), '1'),
  'it is cut': (said, n) => {
    const whole = Buffer.from(writeObject(said).trimEnd());
    return whole.subarray(0, n % whole.length);
  },
  'its frame is broken': (said, n) => {
    const written = writeObject({ members: said.members, gap: '' });
    return pick(
      [
        written.slice(1),
        written.slice(0, -1),
        written.replace(':', ''),
        written.replace(':', ','),
        `[${written.slice(1, -1)}]`,
      ],
      n,
    );
  },
  'it has an extra comma or colon': (said, n) => {
    const written = writeObject({ members: said.members, gap: '' });
    return pick(
      [written.replace('{', '{,'), `${written.slice(0, -1)},}`, written.replace(':', '::'), `${written},`],
      n,
    );
  },
  'something follows': (said, n) =>
    writeObject(said) + pick(['}', ',', '{}', 'x', '"', '\u00a0', '//', '\0', '\ufeff', '\u2028'], n),
  'something precedes': (said, n) =>
    pick(['{', ',', 'x', '\ufeff\ufeff', '\u00a0', '\0', '\u000b', ")]}'\n", '/**/'], n) + writeObject(said),
  'it is wrapped': (said, n) => {
    const written = writeObject(said);
    return pick(
      [`[${written}]`, `{"plant":${written}}`, JSON.stringify(written), `{"":${written}}`, `[[${written}]]`],
      n,
    );
  },
  'it is something else': (_, n) =>
    pick(
      ['', ' ', '{}', '[]', 'null', 'true', '71', '""', '"{}"', '\ufeff', '-0', 'id=1&name=a', '<id>1</id>'],
      n,
    ),
  'it is nested too deeply': (said, n) => withAnother(said, '"deep"', nested(1_001 + (n % 2_000))),
  'it is not UTF-8': (said, n) => {
    const [before = '', after = ''] = withAnother(said, '"bytes"', '"|here|"').split('|here|');
    return Buffer.concat([Buffer.from(before), Uint8Array.from(pick(NOT_UTF8, n)), Buffer.from(after)]);
  },
  'it is UTF-16': (said) => Buffer.from(writeObject(said), 'utf16le'),
};

/** A body, which a failure report shows with its fault. */
export class Body {
  constructor(
    readonly bytes: Buffer,
    readonly fault = 'a few bytes are damaged',
  ) {}

  [fc.toStringMethod](): string {
    return `${this.fault}: ${JSON.stringify(this.bytes.toString('latin1'))} (in Latin-1)`;
  }
}

/** A body that breaks exactly one rule. */
export const invalidBody = fc
  .tuple(fc.constantFrom(...Object.entries(BREAKAGES)), validPlant, fc.nat())
  .map(([[fault, breakIt], said, n]) => new Body(Buffer.from(breakIt(said, n) as string), fault));

/** A valid body with a few bytes changed, added or lost. It may still be valid. */
export const damagedBody = fc
  .tuple(
    validPlant,
    fc.array(fc.record({ at: fc.nat(), byte: fc.nat(255), kind: fc.constantFrom('change', 'add', 'lose') }), {
      minLength: 1,
      maxLength: 3,
    }),
  )
  .map(([said, damages]) => {
    const bytes = [...Buffer.from(writeObject(said))];
    for (const { at, byte, kind } of damages) {
      bytes.splice(at % (bytes.length + 1), kind === 'add' ? 0 : 1, ...(kind === 'lose' ? [] : [byte]));
    }
    return new Body(Buffer.from(bytes));
  });
