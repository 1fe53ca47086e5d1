import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestDatabase } from '../support/database.js';
import { post } from '../support/requests.js';
import { programPath } from '../support/machine.js';
import { needs } from '../support/requirements.js';
import { ServiceProcess } from '../support/service-process.js';

const PLANTS = [
  '{"id":-9223372036854775808,"name":"","tag":""}',
  '{"id":9223372036854775807,"name":"Caf\u00e9 \\\\ \\t \\n \u{1F335}"}',
  ...Array.from({ length: 200 }, (_, id) => `{"id":${id},"name":"plant ${id}","tag":"x"}`),
];

async function create(service: ServiceProcess, plants: string[]): Promise<void> {
  for (const plant of plants) expect(await post(service.port, plant)).toMatchObject({ status: 200 });
}

/** Expects each plant to be unchanged: its create is answered 200, and another plant with its id is a conflict. */
async function expectRestored(service: ServiceProcess): Promise<void> {
  await create(service, PLANTS);
  for (const plant of PLANTS.slice(0, 3)) {
    expect(await post(service.port, plant.replace(/"name":"/, '"name":"not '))).toMatchObject({
      status: 400,
      json: { error: 409 },
    });
  }
  await create(service, ['{"id":1000000,"name":"new"}']);
}

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'plant-store-backup-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('A copy of the data folder of a stopped service is a backup', async () => {
  const [original, copy] = [join(folder, 'original'), join(folder, 'copy')];
  const service = await ServiceProcess.start({ DATA_DIR: original });
  await create(service, PLANTS);
  expect(await service.end('SIGTERM')).toEqual({ code: 0, signal: null });
  execFileSync('cp', ['-a', original, copy]);
  rmSync(original, { recursive: true });

  const restored = await ServiceProcess.start({ DATA_DIR: copy });
  await expectRestored(restored);
  await restored.end('SIGTERM');
});

needs(
  'TEST_DATABASE_URL',
  'pg_dump',
  'pg_restore',
)('On a PostgreSQL server', () => {
  test('pg_restore restores a dump that pg_dump made during creates', async () => {
    const [original, empty] = [await createTestDatabase(), await createTestDatabase()];
    const service = await ServiceProcess.start(original.env);
    await create(service, PLANTS);
    const creating = create(
      service,
      Array.from({ length: 300 }, (_, index) => `{"id":${2_000 + index},"name":"later"}`),
    );
    const dump = join(folder, 'plants.dump');
    const run = (program: string, ...args: string[]) =>
      execFileSync(programPath(program) as string, args, { stdio: 'pipe' });
    run('pg_dump', '--format=custom', `--file=${dump}`, original.env.DATABASE_URL as string);
    await creating;
    await service.end('SIGTERM');
    await original.drop();

    run('pg_restore', '--no-owner', `--dbname=${empty.env.DATABASE_URL as string}`, '--exit-on-error', dump);
    const restored = await ServiceProcess.start(empty.env);
    await expectRestored(restored);
    await restored.end('SIGTERM');
    await empty.drop();
  });
});
