import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { MIGRATIONS } from '../../migrations/index.js';
import { createEmptyDatabase, type TestDatabase } from '../support/database.js';
import { startService } from '../support/service.js';

const MIGRATE = ['dist/src/database/migrate-command.js'];
const TYPEORM = 'node_modules/typeorm/cli.js';
const DATA_SOURCE = ['-d', 'dist/src/database/cli-data-source.js'];
const GENERATE = [TYPEORM, 'migration:generate', 'never-written', '--dryrun', ...DATA_SOURCE];
const REVERT = [...MIGRATE, 'revert'];
const NAMES = MIGRATIONS.map(({ name }) => name);

let database: TestDatabase;
beforeEach(async () => {
  database = await createEmptyDatabase();
});
afterEach(() => database.drop());

/** Runs a command of package.json as npm does, without building first. */
function run(
  args: string[],
  program = process.execPath,
  cwd = '.',
): Promise<{ code: number; output: string }> {
  return new Promise((done) => {
    const env = { PATH: process.env.PATH, LOG_LEVEL: 'warn', ...database.env };
    const child = execFile(program, args, { env, cwd }, (_error, stdout, stderr) => {
      done({ code: child.exitCode ?? -1, output: stdout + stderr });
    });
  });
}

async function recordedMigrations(): Promise<string[]> {
  const service = await startService({ database, env: { MIGRATIONS: 'off' } });
  try {
    return (await service.sql<{ name: string }>('SELECT name FROM migrations')).map(({ name }) => name);
  } finally {
    await service.stop();
  }
}

test('db:migrate migrates, and does nothing the second time', async () => {
  expect(await run(MIGRATE)).toEqual({ code: 0, output: `Migrated: ${NAMES.join(', ')}\n` });
  expect(await run(MIGRATE)).toEqual({ code: 0, output: 'Nothing to migrate.\n' });
  expect(await recordedMigrations()).toEqual(NAMES);
});

test('db:generate finds the table missing before db:migrate, and no change after it', async () => {
  expect((await run(GENERATE)).output).toContain('CREATE TABLE "plants"');
  await run(MIGRATE);
  expect((await run(GENERATE)).output).toContain('No changes in database schema were found');
});

test('db:revert reverts the migrations one by one, and db:migrate runs them again', async () => {
  await run(MIGRATE);
  for (const name of NAMES.toReversed()) {
    const { code, output } = await run(REVERT);
    expect({ code, output }).toEqual({ code: 0, output: `Reverted: ${name}\n` });
  }
  expect(await run(REVERT)).toEqual({ code: 0, output: 'Nothing to revert.\n' });
  expect(await recordedMigrations()).toEqual([]);
  expect((await run(MIGRATE)).output).toBe(`Migrated: ${NAMES.join(', ')}\n`);
});

test('db:migrate and db:revert run in an installation for production, which has no compiler', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-production-'));
  try {
    for (const path of ['dist', 'scripts', 'package.json'])
      cpSync(path, join(folder, path), { recursive: true });
    const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as { dependencies: object };
    for (const name of Object.keys(dependencies)) {
      const place = join(folder, 'node_modules', name);
      mkdirSync(dirname(place), { recursive: true });
      symlinkSync(resolve('node_modules', name), place);
    }
    const npm = (script: string) => run(['run', '-s', script], 'npm', folder);
    expect(await npm('db:migrate')).toEqual({ code: 0, output: `Migrated: ${NAMES.join(', ')}\n` });
    expect(await npm('db:revert')).toEqual({ code: 0, output: `Reverted: ${NAMES.at(-1)}\n` });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('db:migrate by four processes at once records each migration once', async () => {
  const results = await Promise.all(Array.from({ length: 4 }, () => run(MIGRATE)));
  for (const { code, output } of results) {
    // Only one process at a time may hold the folder of the embedded database.
    if (code !== 0) expect(output).toMatch(/^The database was not migrated: .+ is in use by process \d+/);
    if (database.env.DATABASE_URL !== undefined) expect(code).toBe(0);
  }
  expect(results.filter(({ output }) => output.startsWith('Migrated: '))).toHaveLength(1);
  expect(await recordedMigrations()).toEqual(NAMES);
});

test('db:migrate says what is wrong, and its exit code is 1', async () => {
  const { drop } = database;
  database = { env: { DATABASE_URL: 'postgres://plant:wrong-SECRET@127.0.0.1:1/plant' }, drop };
  const { code, output } = await run(MIGRATE);
  expect(output).toBe('The database was not migrated: connect ECONNREFUSED 127.0.0.1:1\n');
  expect(code).toBe(1);
});

test('Nothing in the schema prevents sharding plants by id', async () => {
  const service = await startService({ database });
  try {
    const obstacles = await service.sql(`
      SELECT 'foreign key' AS kind, conname AS name FROM pg_constraint WHERE contype = 'f' AND 'plants'::regclass IN (conrelid, confrelid)
      UNION ALL SELECT 'trigger', tgname FROM pg_trigger WHERE tgrelid = 'plants'::regclass
      UNION ALL SELECT 'sequence', objid::regclass::name FROM pg_depend WHERE refobjid = 'plants'::regclass AND deptype IN ('a', 'i')
        AND objid IN (SELECT oid FROM pg_class WHERE relkind = 'S')
      UNION ALL SELECT 'unique index without id', indexrelid::regclass::name FROM pg_index WHERE indrelid = 'plants'::regclass AND indisunique
        AND NOT (SELECT attnum FROM pg_attribute WHERE attrelid = indrelid AND attname = 'id') = ANY (indkey)`);
    expect(obstacles).toEqual([]);
  } finally {
    await service.stop();
  }
});
