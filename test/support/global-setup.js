import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';

/**
 * Makes the folder for the responses that contract-judge.js reads, and an embedded database that the test files copy:
 * making one takes seconds, copying one does not.
 */
export default async function setUp() {
  process.env.PLANT_STORE_TEST_RESPONSES = await mkdtemp(join(tmpdir(), 'plant-store-test-responses-'));
  if (process.env.TEST_DATABASE_URL !== undefined) return;
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-test-template-'));
  process.env.PLANT_STORE_TEST_TEMPLATE = folder;
  await (await PGlite.create(join(folder, 'postgres'))).close();
}
