import { rm } from 'node:fs/promises';

export default async function tearDown() {
  const folder = process.env.PLANT_STORE_TEST_TEMPLATE;
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
}
