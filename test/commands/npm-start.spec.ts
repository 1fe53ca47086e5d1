import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { until } from '../support/patience.js';
import { undoAfterEach } from '../support/undo.js';

// The tests run in a copy of the checkout, as compiled as this one is.
const COPIED = [
  'src',
  'migrations',
  'scripts',
  'dist',
  'package.json',
  'tsconfig.json',
  'tsconfig.build.json',
];
jest.setTimeout(180_000);

const undo = undoAfterEach();
let checkout: string;
let database: TestDatabase;
beforeAll(async () => {
  checkout = mkdtempSync(join(tmpdir(), 'plant-store-npm-start-'));
  for (const name of COPIED)
    cpSync(name, join(checkout, name), { recursive: true, preserveTimestamps: true });
  symlinkSync(resolve('node_modules'), join(checkout, 'node_modules'));
  database = await createTestDatabase();
});
afterAll(async () => {
  rmSync(checkout, { recursive: true, force: true });
  await database.drop();
});

function run(command: string, ...parameters: string[]) {
  const child: ChildProcess = spawn(command, parameters, {
    cwd: checkout,
    env: { PATH: process.env.PATH, HOME: checkout, PORT: '0', ...database.env },
    detached: true,
  });
  undo(() => child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (data: Buffer) => (output += data.toString()));
  return { child, output: () => output };
}

const startOnly = () => run(process.execPath, 'scripts/start.js');

/** Runs `npm start` and waits for its greeting. @returns npm, and the address and process id of the service. */
async function npmStart() {
  const { child, output } = run('npm', 'start');
  for (;;) {
    const base = /Plant Store listens on (\S+)\n/.exec(output())?.[1];
    const pid = Number(/"pid":(\d+)/.exec(output())?.[1]);
    if (base !== undefined && pid > 0) {
      undo(() => isRunning(pid) && process.kill(pid, 'SIGKILL'));
      return { npm: child, output, base, pid };
    }
    if (child.exitCode !== null) throw new Error(output());
    await delay(20);
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test('One sentence says that the folder dist cannot be written', async () => {
  renameSync(join(checkout, 'dist'), join(checkout, 'elsewhere'));
  writeFileSync(join(checkout, 'dist'), '');
  undo(() => {
    rmSync(join(checkout, 'dist'));
    renameSync(join(checkout, 'elsewhere'), join(checkout, 'dist'));
  });
  const { child, output } = startOnly();
  expect(await once(child, 'close')).toEqual([1, null]);
  expect(output()).toBe(
    'Compiling; the first time takes a few seconds\n' +
      'Plant Store was not started: it cannot be compiled because dist is not writable.\n',
  );
});

test.each<[NodeJS.Signals, string, (npm: number) => number]>([
  ['SIGTERM', 'npm', (npm) => npm],
  ['SIGKILL', 'npm', (npm) => npm],
  // Ctrl-C signals every process of the terminal.
  ['SIGINT', 'both (Ctrl-C)', (npm) => -npm],
])('npm start serves, and %s to %s stops the service', async (signal, _, target) => {
  const { npm, output, base, pid } = await npmStart();
  expect(output()).toContain('Compiling');
  expect((await fetch(`${base}/health/ready`)).status).toBe(200);
  process.kill(target(npm.pid as number), signal);
  await until('the service ends', () => !isRunning(pid));
  await until('it says so', () => output().includes('"msg":"Stopped"'));
});

test('A command that compiles a change also joins it to dist/main.js, which npm run start:prod runs', async () => {
  appendFileSync(join(checkout, 'src/welcome.ts'), "process.emitWarning('This is new.');\n");
  undo(() => cpSync('src/welcome.ts', join(checkout, 'src/welcome.ts')));
  const { child, output } = run('npm', 'run', 'db:migrate');
  expect(await once(child, 'close')).toEqual([0, null]);
  expect(output()).toContain('Nothing to migrate.');
  expect(readFileSync(join(checkout, 'dist/main.js'), 'utf8')).toContain('This is new.');
});

test('A type error is shown as the compiler reports it, with one sentence', async () => {
  appendFileSync(join(checkout, 'src/welcome.ts'), "export const wrong: number = 'text';\n");
  undo(() => cpSync('src/welcome.ts', join(checkout, 'src/welcome.ts')));
  const { child, output } = startOnly();
  expect(await once(child, 'close')).toEqual([1, null]);
  expect(output()).toMatch(
    /^Compiling what changed\nsrc\/welcome\.ts\(\d+,14\): error TS2322: .*\n\nPlant Store was not started: .*\.\n$/,
  );
});

test('One sentence says that the packages are missing', async () => {
  renameSync(join(checkout, 'node_modules'), join(checkout, 'elsewhere'));
  undo(() => renameSync(join(checkout, 'elsewhere'), join(checkout, 'node_modules')));
  const { child, output } = startOnly();
  expect(await once(child, 'close')).toEqual([1, null]);
  expect(output()).toBe(
    'Plant Store was not started: its packages are missing; install them with `npm ci`.\n',
  );
});
