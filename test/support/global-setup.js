import { execFileSync } from 'node:child_process';
import { chmod, mkdtemp } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';

/**
 * Builds `dist`, which some specs run, so that none judges an old build; without a change this takes a moment.
 * Makes the folder for the responses that contract-judge.js reads, and an embedded database that the test files copy:
 * making one takes seconds, copying one does not.
 */
export default async function setUp() {
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, '-b', 'tsconfig.build.json'], { stdio: 'inherit' });
  process.env.PLANT_STORE_TEST_RESPONSES = await mkdtemp(join(tmpdir(), 'plant-store-test-responses-'));
  if ((process.env.TEST_DATABASE_URL ?? process.env.TEST_CITUS_URL) !== undefined) return;
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-test-template-'));
  process.env.PLANT_STORE_TEST_TEMPLATE = folder;
  await (await PGlite.create(join(folder, 'postgres'))).close();
  // As the service leaves it: it would close a folder that is open to others first, file by file.
  await chmod(join(folder, 'postgres'), 0o700);
}
