import { rm } from 'node:fs/promises';

export default async function tearDown() {
  for (const folder of [process.env.PLANT_STORE_TEST_RESPONSES, process.env.PLANT_STORE_TEST_TEMPLATE]) {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  }
}
