import { execFile } from 'node:child_process';
import { createTestDatabase, onServer } from '../support/database.js';
import { DataFolder } from '../support/data-folder.js';
import { needs } from '../support/requirements.js';
import { startService } from '../support/service.js';
import { undoAfterEach } from '../support/undo.js';

/** More than one batch, both by the number of rows and by their length. */
const PLANTS = `INSERT INTO plants (id, name, tag, created_at)
  SELECT g * 7, 'plant ' || g || E'\\n"\\\\ \u{1F335}', nullif(g % 3, 0)::text, now() - g * interval '1.000001 s'
  FROM generate_series(-1500, 1500) AS g
  UNION ALL SELECT 9223372036854775807 - g, repeat('x', 1500000), '', now() FROM generate_series(0, 3) AS g
  UNION ALL SELECT '-9223372036854775808'::bigint, '', NULL, 'infinity'`;
const TOTAL = 3_006;
const CONTENT = `SELECT md5(string_agg(concat_ws('|', id, name, tag, created_at AT TIME ZONE 'UTC'), ',' ORDER BY id)) AS sum FROM plants`;

/** Runs a built database command. */
function run(
  env: Record<string, string | undefined>,
  command: string,
  ...args: string[]
): Promise<{ code: number; output: string }> {
  return new Promise((done) => {
    const variables = { PATH: process.env.PATH, LOG_LEVEL: 'warn', ...env };
    const file = `dist/src/database/${command}-command.js`;
    const child = execFile(
      process.execPath,
      [file, ...args],
      { env: variables },
      (_error, stdout, stderr) => {
        done({ code: child.exitCode ?? -1, output: stdout + stderr });
      },
    );
  });
}

needs('TEST_DATABASE_URL')('db:copy', () => {
  const undo = undoAfterEach();

  async function makeServerDatabase(): Promise<string> {
    const database = await createTestDatabase();
    undo(() => database.drop());
    return database.env.DATABASE_URL as string;
  }

  test('copies every plant exactly in both directions, and may be repeated', async () => {
    const folder = new DataFolder();
    undo(() => folder.remove());
    const [first, second] = [await makeServerDatabase(), await makeServerDatabase()];
    const [toFolder, toServer] = [
      { DATA_DIR: folder.path, DATABASE_URL: first },
      { DATA_DIR: folder.path, DATABASE_URL: second },
    ];
    expect((await run(toFolder, 'migrate')).code).toBe(0);
    await onServer(first, PLANTS);
    const last = async (env: Record<string, string>, ...args: string[]) => {
      const { code, output } = await run(env, 'copy', ...args);
      return `${code} ${output.trimEnd().split('\n').at(-1)}`;
    };
    const copied = (stored: number) =>
      `0 Copied ${stored} plants; ${TOTAL - stored} were there before. All ${TOTAL} were compared and match the source. The target now has ${TOTAL}.`;

    expect(await last(toFolder, 'back')).toBe(copied(TOTAL));
    expect(await last(toServer)).toBe(copied(TOTAL));
    expect(await onServer(second, CONTENT)).toEqual(await onServer(first, CONTENT));
    await onServer(second, 'DELETE FROM plants WHERE id > 0');
    expect(await last(toServer)).toBe(copied(1_504));
    await onServer(second, `UPDATE plants SET tag = 'other' WHERE id = 0`);
    await onServer(second, `UPDATE plants SET created_at = created_at + interval '1 us' WHERE id = 7`);
    expect(await last(toServer)).toBe(
      `1 The plants were not copied: 2 of ${TOTAL} ids belong to different plants in the target, which were not changed: 0, 7`,
    );
    expect(await onServer(second, 'SELECT tag FROM plants WHERE id = 0')).toEqual([{ tag: 'other' }]);
  });

  test('says what is missing', async () => {
    const folder = new DataFolder();
    undo(() => folder.remove());
    const env = { DATA_DIR: folder.path, DATABASE_URL: await makeServerDatabase() };
    expect(await run(env, 'copy')).toEqual({
      code: 1,
      output: `The plants were not copied: there is no embedded database in ${folder.path}; set DATA_DIR\n`,
    });
    expect(await run({ DATA_DIR: folder.path }, 'copy')).toEqual({
      code: 1,
      output: 'The plants were not copied: DATABASE_URL is missing; it names the server\n',
    });
  });
});

describe('db:psql', () => {
  const folder = new DataFolder();
  const database = { env: { DATA_DIR: folder.path }, drop: () => Promise.resolve() };
  const psql = (...args: string[]) => run({ DATA_DIR: folder.path }, 'psql', ...args);

  afterAll(() => folder.remove());

  test('does not make a database', async () => {
    expect(await psql('SELECT 1')).toEqual({
      code: 1,
      output: `The statement was not run: there is no embedded database in ${folder.path}; set DATA_DIR\n`,
    });
  });

  test('says who holds the folder; reads it when it is free, and cannot write', async () => {
    const service = await startService({ database });
    try {
      await service.sql(`INSERT INTO plants (id, name) VALUES (9223372036854775807, 'a')`);
      const { code, output } = await psql('SELECT 1');
      expect(output).toMatch(
        new RegExp(`^The statement was not run: .+ is in use by process ${process.pid} on `),
      );
      expect(code).toBe(1);
    } finally {
      await service.stop();
    }
    for (const statement of ['DELETE FROM plants', 'COMMIT; DELETE FROM plants']) {
      expect((await psql(statement)).code).toBe(1);
    }
    expect(await psql('SELECT id, name, tag, 1 + 1 AS sum FROM plants')).toEqual({
      code: 0,
      output: '{"id":"9223372036854775807","name":"a","tag":null,"sum":"2"}\n',
    });
  });
});
