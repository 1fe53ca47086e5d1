import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { programPath } from '../support/machine.js';
import { needs } from '../support/requirements.js';
import { startService, TOKEN, type TestService } from '../support/service.js';

/** The code blocks of docs/CLIENTS.md, with their languages and names. */
const BLOCKS = Array.from(
  readFileSync('docs/CLIENTS.md', 'utf8').matchAll(/^```(\w+)(?: name=([\w-]+))?\n([^]*?)^```$/gm),
  ([, language = '', name = '', text = '']) => ({ language, name, text }),
);
const EXACT_ID = '9007199254740993';
/** The document runs tools by npx; the tests run those of test/package.json and download nothing. */
const PATH = `${resolve('test/node_modules/.bin')}:${process.env.PATH ?? ''}`;
/** Node.js 20 needs this flag for JSON.rawJSON. */
const RAW_JSON = 'rawJSON' in JSON ? [] : ['--harmony-json-parse-with-source'];

let service: TestService;
let folder: string;
beforeAll(async () => {
  service = await startService();
  folder = mkdtempSync(join(tmpdir(), 'plant-store-clients-'));
  cpSync('openapi.json', join(folder, 'openapi.json'));
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await service.stop();
});
beforeEach(() => service.sql('DELETE FROM plants'));

/** @returns the block with this test's address and token. */
function block(language: string, name: string): string {
  const found = BLOCKS.find((candidate) => candidate.language === language && candidate.name === name);
  if (found === undefined) throw new Error(`docs/CLIENTS.md has no block ${language} ${name}`);
  return found.text
    .replaceAll('http://localhost:3000', service.url)
    .replaceAll('my-token', TOKEN)
    .replaceAll(/npx (-p \S+ |@[\w-]+\/)?/g, '');
}

function write(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

/** Runs a program without blocking this process, which also runs the service. */
async function run(program: string, args: string[], env: Record<string, string> = {}): Promise<string> {
  const child = spawn(program, args, { cwd: folder, env: { ...process.env, PATH, HOME: folder, ...env } });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data: Buffer) => (output += data.toString()));
  const code = await new Promise((done) => child.once('close', done));
  if (code !== 0) throw new Error(`${program} ended by ${String(code)}: ${output}`);
  return output;
}

async function expectStored(id = EXACT_ID): Promise<void> {
  expect(await service.sql('SELECT id, name FROM plants')).toEqual([{ id, name: 'Monstera' }]);
}

test('Every named block of docs/CLIENTS.md is tested', () => {
  const tried = ['openapi-fetch', 'hey-api', 'text', 'curl', 'python', 'go', 'java', 'for-tools', 'postman'];
  const named = BLOCKS.map(({ name }) => name).filter((name) => name !== '');
  expect([...new Set(named)].sort()).toEqual(tried.sort());
});

describe('JavaScript', () => {
  const node = (name: string, text: string) => run(process.execPath, [...RAW_JSON, write(name, text)]);

  test('openapi-fetch sends an id beyond 2^53 exactly', async () => {
    expect(await node('openapi-fetch.mjs', block('js', 'openapi-fetch'))).toContain('Monstera');
    await expectStored();
  });

  test('openapi-fetch cannot send a bigint without the documented line', async () => {
    const without = block('js', 'openapi-fetch').replace(/^BigInt.*$/m, '');
    await expect(node('without.mjs', without)).rejects.toThrow('BigInt');
    expect(await service.sql('SELECT id FROM plants')).toEqual([]);
  });

  test('an id sent as a number is rounded, and Plant-Id shows it', async () => {
    const rounded = block('js', 'openapi-fetch')
      .replace(`${EXACT_ID}n`, EXACT_ID)
      .replace('String(id)', `'${EXACT_ID}'`);
    await expect(node('rounded.mjs', rounded)).rejects.toThrow('another id was stored');
    await expectStored('9007199254740992');
  });

  test('@hey-api/openapi-ts makes a client that sends the id exactly', async () => {
    await run('sh', ['-c', block('sh', 'hey-api')]);
    // The client is TypeScript, and its imports have no file extensions.
    const tsc = resolve('node_modules/typescript/bin/tsc');
    const options = '--module commonjs --target es2022 --noCheck --rootDir client --outDir client';
    await run(process.execPath, [tsc, 'client/index.ts', ...options.split(' ')]);
    write('client/package.json', '{"type":"commonjs"}');
    expect(await node('hey-api.mjs', block('js', 'hey-api'))).toContain(`Monstera ${EXACT_ID}`);
    await expectStored();
  });

  test('a body written as text sends the id exactly', async () => {
    expect(await run(process.execPath, [write('text.mjs', block('js', 'text'))])).toBe(`200 ${EXACT_ID}\n`);
    await expectStored();
  });
});

needs('curl')('curl', () => {
  test('creates', async () => {
    expect(await run('sh', ['-c', block('sh', 'curl')])).toContain('{"name":"Monstera"}');
    await expectStored();
  });
});

needs('python3')('Python', () => {
  test('creates', async () => {
    expect(await run(programPath('python3') as string, [write('create.py', block('python', 'python'))])).toBe(
      `Monstera ${EXACT_ID}\n`,
    );
    await expectStored();
  });
});

needs('go')('Go', () => {
  test('creates', async () => {
    const file = write('create.go', block('go', 'go'));
    const env = { GOCACHE: join(folder, 'go-cache'), GOFLAGS: '-mod=mod', GO111MODULE: 'off' };
    expect(await run('go', ['run', file], env)).toBe(`200 ${EXACT_ID}\n`);
    await expectStored();
  });
});

needs('java')('Java', () => {
  test('creates', async () => {
    expect(await run('java', [write('Create.java', block('java', 'java'))])).toContain(`200 ${EXACT_ID}`);
    await expectStored();
  });
});

describe('The copy for tools', () => {
  test('has examples and one server, and makes a Postman collection that works', async () => {
    const copy = join(folder, 'openapi.for-tools.json');
    const [, address = ''] = /-- (\S+)/.exec(block('sh', 'for-tools')) ?? [];
    execFileSync(process.execPath, ['scripts/openapi-for-tools.js', address, copy]);
    const document = JSON.parse(readFileSync(copy, 'utf8')) as { servers: object[] };
    expect(document.servers).toEqual([{ url: service.url }]);

    const output = await run('sh', ['-ec', block('sh', 'postman')]);
    expect(output).toMatch(/\[200 OK/);
    await expectStored('1');
  });

  test('is not made for an invalid address', () => {
    const { status, stderr } = spawnSync(process.execPath, ['scripts/openapi-for-tools.js', 'plants'], {
      encoding: 'utf8',
    });
    expect(status).toBe(1);
    expect(stderr).toContain('Usage');
  });
});
