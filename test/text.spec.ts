import { expectError, post, type Answer, type Bytes } from './support/requests.js';
import { countRows, startService, unusedId, type TestService } from './support/service.js';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

const create = (members: string, headers = {}) => post(service.port, `{${members}}`, headers);

/** @returns the bytes that the database holds for an id, in hexadecimal. */
async function bytesOf(id: bigint): Promise<{ name: string; tag: string | null } | undefined> {
  const [row] = await service.sql<{ name: string; tag: string | null }>(
    `SELECT encode(convert_to(name, 'UTF8'), 'hex') AS name, encode(convert_to(tag, 'UTF8'), 'hex') AS tag
     FROM plants WHERE id = $1`,
    [`${id}`],
  );
  return row;
}

const hex = (text: string) => Buffer.from(text).toString('hex');
/** A JSON string with every UTF-16 code unit escaped. */
const escaped = (text: string) =>
  `"${text.replace(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)}"`;

async function expectRefused(body: Bytes, error: number, message?: string): Promise<void> {
  const before = await countRows(service);
  const answer = await post(service.port, body);
  expectError(answer, 400, error);
  if (message !== undefined) expect(answer.json).toHaveProperty('message', message);
  expect(answer.text).not.toContain('\uFFFD');
  expect(await countRows(service)).toBe(before);
}

describe('A text', () => {
  test.each([
    ['nothing', ''],
    ['a space', ' '],
    ['white space around words', '  Monstera  deliciosa \t'],
    ['lines', '\na\r\nb\rc\n'],
    ['controls', '\u0001\b\f\u000b\u001b\u001f\u007f\u0080\u009f'],
    ['spaces of Unicode', '\u00a0\u1680\u2002\u2028\u2029\u202f\u3000'],
    ['invisible characters', '\u00ad\u200b\u200d\u2060\u180e\ufff9'],
    ['a byte order mark', '\ufeff'],
    ['a byte order mark before and after', '\ufeffa\ufeff'],
    ['a composed letter', '\u00e9\u00c5\u1e69'],
    ['the same letters decomposed', 'e\u0301A\u030as\u0323\u0307'],
    ['compatibility characters', '\ufb01\u2126\u212b\u00bd\uff21'],
    ['stacked marks', `Z${'\u0317\u0350\u0323'.repeat(50)}`],
    ['right to left', '\u202e\u05d0\u0628\u202c\u2067'],
    ['dotted and dotless i, sharp s', 'Iıİi ßẞ'],
    ['Chinese, Thai, Hindi', '龟背竹 ต้นไม้ पौधा'],
    ['characters beyond the first plane', '\u{1f33f}\u{1d11e}\u{20bb7}\u{10ffff}'],
    ['emoji of several characters', '👩‍🌾🏳️‍🌈🇩🇪👍🏽'],
    ['noncharacters', '\ufffe\uffff\ufdd0\u{1fffe}'],
    ['private use', '\ue000\u{f0000}'],
    ['the replacement character itself', '\ufffd'],
    ['the first and last characters of each length in UTF-8', '\u007f\u0080\u07ff\u0800\uffff\u{10000}'],
    ['quotes and backslashes', `"'\`\\\\"\\u0041\\`],
    ['SQL', `'); DROP TABLE plants; --$1 \\x41 E'\\'' $$a$$`],
    ['HTML', '<script>alert(1)</script>&amp;</pre>'],
    ['words of JavaScript', 'null undefined NaN [object Object] __proto__'],
    ['a format', '%s %d %n ${name} {{name}} {0}'],
    ['a hundred thousand characters', 'ä€𝄞'.repeat(40_000)],
  ])('is stored and answered byte for byte: %s', async (_, text) => {
    for (const spelled of [JSON.stringify(text), escaped(text)]) {
      const [asName, asTag] = [unusedId(), unusedId()];
      const answers = [
        await create(`"id":${asName},"name":${spelled}`),
        await create(`"id":${asTag},"name":"","tag":${spelled}`),
        // A repeat is refused unless it equals what is stored.
        await create(`"id":${asName},"name":${spelled}`),
      ];
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(answers.map(({ json }) => json)).toEqual([
        { name: text },
        { name: '', tag: text },
        { name: text },
      ]);
      expect(answers[0]?.headers).toMatchObject({
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(answers[0]?.text as string)),
      });
      expect(await bytesOf(asName)).toEqual({ name: hex(text), tag: null });
      expect(await bytesOf(asTag)).toEqual({ name: '', tag: hex(text) });
    }
  });

  test.each([
    ['composed and decomposed', '\u00e9', 'e\u0301'],
    ['upper and lower case', 'Aloe', 'aloe'],
    ['with and without a space', 'Aloe', 'Aloe '],
    ['with and without a byte order mark', 'Aloe', '\ufeffAloe'],
    ['with and without an invisible character', 'Aloe', 'Al\u200boe'],
    ['a ligature and its letters', '\ufb01', 'fi'],
  ])('differs from another in one byte: %s', async (_, first, second) => {
    const id = unusedId();
    await create(`"id":${id},"name":"${first}","tag":"${first}"`);
    expectError(await create(`"id":${id},"name":"${second}","tag":"${first}"`), 400, 409);
    expectError(await create(`"id":${id},"name":"${first}","tag":"${second}"`), 400, 409);
    expect(await bytesOf(id)).toEqual({ name: hex(first), tag: hex(first) });
  });
});

describe('Text that PostgreSQL cannot hold', () => {
  const NUL = 'must not have the character U+0000';
  const SURROGATE = 'must be Unicode text without lone surrogates';
  const UNSTORABLE: [json: string, fault: string][] = [
    ['"\\u0000"', NUL],
    ['"\\u0000a"', NUL],
    ['"a\\u0000b"', NUL],
    ['"ab\\u0000"', NUL],
    ['"a\\u0000b\\u0000"', NUL],
    [`"${'a'.repeat(100_000)}\\u0000"`, NUL],
    ['"\\uD800"', SURROGATE],
    ['"\\udbff"', SURROGATE],
    ['"\\uDC00"', SURROGATE],
    ['"\\udfffa"', SURROGATE],
    ['"a\\uD800b"', SURROGATE],
    ['"\\uD800\\uD800"', SURROGATE],
    ['"\\uDC00\\uD800"', SURROGATE],
    ['"\\uD834\\uD834\\uDD1E"', SURROGATE],
    ['"\\uD834\\uDD1E\\uDD1E"', SURROGATE],
    ['"\\uD834\\n\\uDD1E"', SURROGATE],
    ['"\\uD834\\\\uDD1E"', SURROGATE],
  ];
  const cases = UNSTORABLE.map(([json, fault]) => [json.slice(0, 40), json, fault] as const);

  test.each(cases)('is refused in a name and in a tag: %s', async (_, json, fault) => {
    await expectRefused(`{"id":${unusedId()},"name":${json}}`, 400, `name ${fault}.`);
    await expectRefused(`{"id":${unusedId()},"name":"a","tag":${json}}`, 400, `tag ${fault}.`);
    await expectRefused(
      `{"id":${unusedId()},"name":${json},"tag":${json}}`,
      400,
      `name ${fault}; tag ${fault}.`,
    );
  });

  test.each(cases)('is ignored in a member that the contract does not name: %s', async (_, json) => {
    for (const extra of [`"x":${json}`, `"x":[{"y":${json}}]`, `${json}:1`, `"x":{${json}:1}`]) {
      expect((await create(`"id":${unusedId()},"name":"a",${extra}`)).text).toBe('{"name":"a"}');
    }
  });
});

describe('Bytes that are not UTF-8', () => {
  test.each([
    ['a continuation byte alone', '80'],
    ['two continuation bytes', 'bfbf'],
    ['a start byte alone', 'c3'],
    ['two bytes of three', 'e282'],
    ['three bytes of four', 'f09f8c'],
    ['a start byte before a letter', 'c341'],
    ['two bytes for U+0000', 'c080'],
    ['two bytes for a slash', 'c0af'],
    ['three bytes for a slash', 'e080af'],
    ['four bytes for a slash', 'f08080af'],
    ['three bytes for U+07FF', 'e09fbf'],
    ['a high surrogate', 'eda080'],
    ['a low surrogate', 'edb080'],
    ['a pair of surrogates (CESU-8)', 'eda0b4edb49e'],
    ['beyond U+10FFFF', 'f4908080'],
    ['a sequence of five', 'f888808080'],
    ['a sequence of six', 'fc8480808080'],
    ['FE', 'fe'],
    ['FF', 'ff'],
    ['Latin-1', 'e9'],
    ['Windows-1252 quotes', '93a494'],
  ])('are refused anywhere in the body, and never replaced: %s', async (_, bytes) => {
    const at = (before: string, after: string) =>
      Buffer.concat([Buffer.from(before), Buffer.from(bytes, 'hex'), Buffer.from(after)]);
    const message = 'The body is not UTF-8 text.';
    await expectRefused(at(`{"id":${unusedId()},"name":"a`, 'b"}'), 400, message);
    await expectRefused(at(`{"id":${unusedId()},"name":"a","tag":"`, '"}'), 400, message);
    await expectRefused(at(`{"id":${unusedId()},"name":"a","x":["`, '"]}'), 400, message);
    await expectRefused(at(`{"id":${unusedId()},"name":"a","`, '":1}'), 400, message);
    await expectRefused(at(`{"id":${unusedId()},"name":"a"}`, ''), 400, message);
    await expectRefused(at('', `{"id":${unusedId()},"name":"a"}`), 400, message);
  });

  test.each([
    ['UTF-16, little-endian', 'fffe', (text: string) => Buffer.from(text, 'utf16le')],
    ['UTF-16, big-endian', 'feff', (text: string) => Buffer.from(text, 'utf16le').swap16()],
    ['UTF-32, little-endian', 'fffe0000', utf32],
  ])('are refused in another encoding: %s', async (_, mark, encode) => {
    const encoded = encode(`{"id":${unusedId()},"name":"a"}`);
    await expectRefused(encoded, 400);
    await expectRefused(Buffer.concat([Buffer.from(mark, 'hex'), encoded]), 400);
  });

  function utf32(text: string): Buffer {
    return Buffer.from(Uint32Array.from(text, (character) => character.codePointAt(0) as number).buffer);
  }
});

describe('A byte order mark', () => {
  test('before the JSON is ignored', async () => {
    const id = unusedId();
    expect((await post(service.port, `\ufeff{"id":${id},"name":"a"}`)).text).toBe('{"name":"a"}');
    expect(await bytesOf(id)).toEqual({ name: hex('a'), tag: null });
  });

  test.each([
    ['alone', () => '\ufeff', 'The body is empty; it must be a JSON object.'],
    ['twice', () => `\ufeff\ufeff{"id":${unusedId()},"name":"a"}`, 'The body is not valid JSON.'],
    ['after the JSON', () => `{"id":${unusedId()},"name":"a"}\ufeff`, 'The body is not valid JSON.'],
    ['between members', () => `{"id":${unusedId()},\ufeff"name":"a"}`, 'The body is not valid JSON.'],
    ['after white space', () => ` \ufeff{"id":${unusedId()},"name":"a"}`, 'The body is not valid JSON.'],
  ])('is refused %s', (_, body, message) => expectRefused(body(), 400, message));
});

describe('The charset', () => {
  const createAs = (contentType: string): Promise<Answer> =>
    create(`"id":${unusedId()},"name":"é"`, { 'Content-Type': contentType });

  test.each([
    'application/json; charset=UTF-8',
    'application/json;charset=utf-8',
    'application/json; charset="utf-8"',
    'application/json; CHARSET=Utf-8',
    'application/json \t;\t charset=utf-8 ',
    'application/json; charset="ut\\f-8"',
    'application/json; version=1; charset=utf-8',
  ])('is read as RFC 9110 writes it: %s', async (contentType) => {
    expect((await createAs(contentType)).text).toBe('{"name":"é"}');
  });

  test.each([
    'utf8',
    'utf-16',
    'utf-16le',
    'utf-32',
    'utf-7',
    'iso-8859-1',
    'us-ascii',
    'windows-1252',
    '"utf-8 "',
    "'utf-8'",
    'unknown',
    '*',
  ])('must be utf-8: %s', async (charset) => {
    const answer = await createAs(`application/json; charset=${charset}`);
    expectError(answer, 400, 415);
    expect(answer.json).toHaveProperty('message', 'The charset of Content-Type must be utf-8.');
  });
});
