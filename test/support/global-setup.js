import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { build } from '../../scripts/build.js';

/**
 * Builds `dist`, which some specs run. If nothing changed, this takes a moment.
 * Makes one folder for everything that the run writes; global-teardown.js removes it. It holds the responses that
 * contract-judge.js reads, and an embedded database that test files copy, because making one takes seconds.
 */
export default async function setUp() {
  await build();
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-tests-'));
  // PostgreSQL and the gateways run as other users.
  chmodSync(folder, 0o755);
  process.env.TMPDIR = folder;
  process.env.PLANT_STORE_TEST_RUN = randomUUID().slice(0, 8);
  process.env.PLANT_STORE_TEST_RESPONSES = join(folder, 'responses');
  mkdirSync(process.env.PLANT_STORE_TEST_RESPONSES);
  if ((process.env.TEST_DATABASE_URL ?? process.env.TEST_CITUS_URL) !== undefined) return;
  process.env.PLANT_STORE_TEST_TEMPLATE = join(folder, 'template');
  mkdirSync(process.env.PLANT_STORE_TEST_TEMPLATE);
  const postgres = join(process.env.PLANT_STORE_TEST_TEMPLATE, 'postgres');
  await (await PGlite.create(postgres)).close();
  // template1 and template0, to which nobody connects, are two thirds of the files to copy.
  for (const database of ['1', '4']) {
    rmSync(join(postgres, 'base', database), { recursive: true });
    mkdirSync(join(postgres, 'base', database), { mode: 0o700 });
  }
  // The service leaves its folder so. It would make an open folder private first, file by file.
  chmodSync(postgres, 0o700);
}
