import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { readEnvFile } from './env-file.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'plant-store-env-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function read(content: string | Buffer) {
  const path = join(folder, '.env');
  writeFileSync(path, content);
  const { variables, faults } = readEnvFile(path);
  return { variables: Object.fromEntries(variables), faults: faults.map((fault) => fault.replace(path, '')) };
}

test('A missing file sets nothing', () => {
  expect(readEnvFile(join(folder, 'nothing'))).toEqual({ variables: new Map(), faults: [] });
});

test('A folder is a fault', () => {
  expect(readEnvFile(folder).faults).toEqual([`${folder} cannot be read: EISDIR`]);
});

test.each([
  ['nothing', ''],
  ['no line end', 'A=1'],
  ['comments and empty lines', '# first\n\n# second\nA=1 # third\n'],
  ['CRLF', 'A=1\r\n\r\nB=2\r\n'],
  ['export and spaces', 'export A=1\n  B = two words  \nC=\n'],
  ['quotes', `A='a "b" #c'\nB="it's"\nC=\`"'\`\nD=""\n`],
  ['quotes with a comment after them', `A='1' # one\n`],
  ['several lines in quotes', 'A="1\n2"\nB=3\n'],
  ['\\n in double quotes only', `A="1\\n2"\nB='1\\n2'\nC=1\\n2\n`],
  ['an equals sign', 'A=b=c==\n'],
  ['a URL', 'DATABASE_URL=postgres://u:p%25@h:5432/d?sslmode=require\n'],
  ['text beyond ASCII', 'A=caf\u00e9 \ufffd\n'],
])("Is read as by Node.js's own --env-file: %s", (_, content) => {
  const { variables, faults } = read(content);
  expect(faults).toEqual([]);
  expect(variables).toEqual({ ...parseEnv(content) });
});

test('Reads an indented comment, after which Node.js 20 loses a variable, and a comment after a tab', () => {
  expect(read('  # first\nA=1\t# second\nB=2\n')).toEqual({ variables: { A: '1', B: '2' }, faults: [] });
});

test.each<[string, string | Buffer, string[]]>([
  ['a byte order mark', '\ufeffA=1\n', ['line 1 starts with a byte order mark']],
  ['UTF-16 of Windows', Buffer.from('\ufeffA=1\n', 'utf16le'), ['line 1 is not UTF-8']],
  ['UTF-16 without a mark', Buffer.from('A=1\n', 'utf16le'), ['line 1 is not UTF-8']],
  ['Latin-1', Buffer.from('A=1\nB=caf\u00e9\n', 'latin1'), ['line 2 is not UTF-8']],
  ['a name with a hyphen', 'A=1\nACCESS-TOKENS=a\nB=2\n', ['line 2 is not NAME=value']],
  ['a name that starts with a digit', '1A=1\n', ['line 1 is not NAME=value']],
  ['no name', '=1\n', ['line 1 is not NAME=value']],
  ['no equals sign', 'A\n', ['line 1 is not NAME=value']],
  ['a name with a colon, as in YAML', 'A: 1\n', ['line 1 is not NAME=value']],
  ['a # at which Node.js would cut the value', 'A=pass#word\n', ['line 1 is not NAME=value']],
  ['a quote that is not closed', `A='1\nB=2\n`, ['line 1 is not NAME=value']],
  ['text after the quotes', `A="1"2\n`, ['line 1 is not NAME=value']],
  ['a carriage return alone', 'A=1\rB=2\n', ['line 1 is not NAME=value']],
  ['a name twice', 'A="\n\n1"\nB=2\nA=3\n', ['line 5 sets A again']],
  ['two faults', 'A\nB=2\nC\n', ['line 1 is not NAME=value', 'line 3 is not NAME=value']],
])('A fault names its line: %s', (_, content, expected) => {
  const { faults } = read(content);
  expect(faults.map((fault) => fault.trim())).toEqual(
    expected.map((start) => expect.stringMatching(new RegExp(`^${start}`)) as string),
  );
});
