import { execFileSync, spawn, spawnSync, type ChildProcess, type SpawnOptions } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createTestDatabase, TEST_DATABASE_URL, type TestDatabase } from '../support/database.js';
import { freePort } from '../support/machine.js';
import { untilAnswers } from '../support/patience.js';

/** The user of the image. It need not exist here, and has no rights. */
const USER = process.getuid?.() === 0 ? { uid: 1000, gid: 1000 } : {};

interface Instruction {
  name: string;
  value: string;
}

interface Stage {
  name: string;
  instructions: Instruction[];
}

function parseDockerfile(): Stage[] {
  const stages: Stage[] = [];
  for (const line of readFileSync('Dockerfile', 'utf8').split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [, name, value] = /^([A-Z]+) (.+)$/.exec(line) as unknown as [string, string, string];
    if (name === 'FROM')
      stages.push({ name: /^\S+ AS (\S+)$/.exec(value)?.[1] ?? 'image', instructions: [] });
    else stages.at(-1)?.instructions.push({ name, value });
  }
  return stages;
}

const stages = parseDockerfile();
const instructionsOf = (stage: string, name: string) =>
  (stages.find((candidate) => candidate.name === stage)?.instructions ?? [])
    .filter((instruction) => instruction.name === name)
    .map(({ value }) => value);
const commandOf = (name: string) =>
  JSON.parse((instructionsOf('image', name)[0] ?? '').replace(/^.*?\[/, '[')) as string[];

/** The build context: .dockerignore excludes everything (`*`) but these (`!`). */
const sent = readFileSync('.dockerignore', 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('!'))
  .map((line) => line.slice(1));

let root: string;
let tree: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'plant-store-image-'));
  chmodSync(root, 0o755);
  tree = makeTree();
}, 300_000);
afterAll(() => {
  execFileSync('chmod', ['-R', 'u+w', root]);
  rmSync(root, { recursive: true, force: true });
});

/** Does what the COPY instructions of a stage do, from the build context or the folder of another stage. */
function copyInto(folder: string, stage: string): void {
  for (const value of instructionsOf(stage, 'COPY')) {
    const [, from, sources, target] = /^(?:--from=(\S+) )?(.+) (\S+)$/.exec(value) as unknown as [
      string,
      string | undefined,
      string,
      string,
    ];
    for (const source of sources.split(' ')) {
      if (from === undefined) expect(sent).toContain(source);
      const path = from === undefined ? resolve(source) : join(root, from, source.replace('/app/', ''));
      const name = target.endsWith('/') ? source.split('/').at(-1) : target;
      cpSync(path, join(folder, name as string), { recursive: true });
    }
  }
}

/** Does what the Dockerfile does, in folders. @returns the folder of the image, which is read-only. */
function makeTree(): string {
  for (const { name } of stages) {
    const folder = join(root, name);
    mkdirSync(folder);
    copyInto(folder, name);
    const [install, ...others] = instructionsOf(name, 'RUN').filter((command) => command.startsWith('npm '));
    // Use the packages of this checkout, which `npm ci` installed before the tests.
    if (install === 'npm ci') symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
    else if (install !== undefined) others.unshift(install);
    for (const command of others) {
      execFileSync('npm', command.split(' ').slice(1), { cwd: folder, stdio: 'pipe' });
    }
  }
  const folder = join(root, 'image');
  execFileSync('chmod', ['-R', 'a-w,a+rX', folder]);
  return folder;
}

/** @returns the variables, the user and the folder of a process in the image. */
function inImage(env: Record<string, string>): SpawnOptions {
  const own = instructionsOf('image', 'ENV').map((value) => value.split('=') as [string, string]);
  return { cwd: tree, env: { PATH: process.env.PATH, ...Object.fromEntries(own), ...env }, ...USER };
}

const run = (command: string[], env: Record<string, string>) =>
  spawnSync(process.execPath, command.slice(1), { ...inImage(env), encoding: 'utf8' });

test('The image has what it needs to run, and no build tools or sources', () => {
  expect(instructionsOf('image', 'USER')).toEqual(['1000:1000']);
  expect(existsSync(join(tree, 'dist/main.js'))).toBe(true);
  for (const name of ['typescript', 'jest', 'eslint', '@swc', 'pg-cloudflare']) {
    expect(existsSync(join(tree, 'node_modules', name))).toBe(false);
  }
  for (const name of ['src', 'test', 'migrations', '.git', '.env'])
    expect(existsSync(join(tree, name))).toBe(false);
  expect(instructionsOf('image', 'RUN')[0]).toMatch(/^rm -rf .*\/npm /);
});

const DATABASES: [string, string | undefined][] = [['the embedded database', undefined]];
if (TEST_DATABASE_URL !== undefined) DATABASES.push(['a PostgreSQL server', TEST_DATABASE_URL]);

describe.each(DATABASES)('With read-only files, as another user, on %s', (_, server) => {
  let database: TestDatabase;
  let env: Record<string, string>;
  let service: ChildProcess | undefined;

  beforeAll(async () => {
    if (server === undefined) {
      const folder = mkdtempSync(join(root, 'data-'));
      if (USER.uid !== undefined) execFileSync('chown', [`${USER.uid}:${USER.gid}`, folder]);
      database = { env: { DATA_DIR: folder }, drop: () => Promise.resolve() };
    } else {
      database = await createTestDatabase();
    }
    env = { ...database.env, PORT: String(await freePort()), ACCESS_TOKENS: 'token' };
  });
  afterAll(async () => {
    service?.kill('SIGKILL');
    await database.drop();
  });

  test('the migration runs, and then the service becomes ready, creates and stops', async () => {
    const migrated = run(['node', 'dist/src/database/migrate-command.js'], env);
    expect(migrated.stderr).toBe('');
    expect(migrated.stdout).toContain('Migrated: ');
    expect(migrated.status).toBe(0);

    const [, ...command] = commandOf('CMD');
    service = spawn(process.execPath, command, { ...inImage({ ...env, MIGRATIONS: 'off' }), stdio: 'pipe' });
    let output = '';
    for (const stream of [service.stdout, service.stderr])
      stream?.on('data', (data) => (output += String(data)));
    const exit = new Promise((done) => service?.once('exit', (code, signal) => done({ code, signal })));
    const health = (probe: string) =>
      run([...commandOf('HEALTHCHECK').slice(0, -1), probe], env).status === 0;

    await untilAnswers('the service', service, () => Promise.resolve(health('ready')), {
      output: () => output,
    });
    expect(commandOf('HEALTHCHECK').at(-1)).toBe('live');
    expect(health('live')).toBe(true);
    const created = await fetch(`http://127.0.0.1:${env.PORT}/plants`, {
      method: 'POST',
      headers: { Authorization: 'Bearer token', 'Content-Type': 'application/json' },
      body: '{"id":1,"name":"Monstera"}',
    });
    expect({ status: created.status, body: await created.text() }).toEqual({
      status: 200,
      body: '{"name":"Monstera"}',
    });
    expect((await fetch(`http://127.0.0.1:${env.PORT}/docs`)).status).toBe(200);

    service.kill('SIGTERM');
    expect(await exit).toEqual({ code: 0, signal: null });
    expect(health('live')).toBe(false);
  });

  test('a start without a token or a database fails and says what is missing', () => {
    const refused = run(commandOf('CMD'), {});
    expect(refused.status).not.toBe(0);
    expect(refused.stderr).toMatch(/ACCESS_TOKENS is missing[^]*DATABASE_URL is missing/);
  });
});
