import { readdirSync, readFileSync } from 'node:fs';
import { DataSource } from 'typeorm';
import { MIGRATIONS } from '../migrations/index.js';
import { NewPlantDto } from '../src/plants/new-plant.dto.js';
import { memberNames } from '../src/json-body/dto-validation.pipe.js';
import { expectError, post } from './support/requests.js';
import { startService, unusedId, type TestService } from './support/service.js';

// Each member of NewPlant must have a column, be stored there, compared with that of a repeat, and answered. These tests
// fail if the code or a migration forgets a member in one of these places.

interface Schema {
  required: string[];
  properties: Record<string, { type: string }>;
}

const { NewPlant, Plant } = (
  JSON.parse(readFileSync('openapi.json', 'utf8')) as {
    components: { schemas: Record<'NewPlant' | 'Plant', Schema> };
  }
).components.schemas;

const MEMBERS = Object.keys(NewPlant.properties);
const OPTIONAL = MEMBERS.filter((member) => !NewPlant.required.includes(member));

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

/** @returns a plant with a unique value of the right type for each member. */
function newPlant(): Record<string, unknown> {
  const valueOf = (member: string) => {
    const values: Record<string, unknown> = {
      string: `${member} ${unusedId()}`,
      integer: Number(unusedId()),
      boolean: true,
    };
    return values[(NewPlant.properties[member] as { type: string }).type];
  };
  return Object.fromEntries(MEMBERS.map((member) => [member, valueOf(member)]));
}

const create = (plant: Record<string, unknown>) => post(service.port, JSON.stringify(plant));

async function stored(id: unknown): Promise<Record<string, unknown> | undefined> {
  const [row] = await service.sql<Record<string, unknown>>('SELECT * FROM plants WHERE id = $1', [id]);
  return row;
}

test('The DTO has the members of the contract', () => {
  expect(memberNames(NewPlantDto).toSorted()).toEqual(MEMBERS.toSorted());
});

test('migrations/index.ts lists every migration in the folder, oldest first', () => {
  const files = readdirSync('migrations').filter((file) => file !== 'index.ts');
  const timestamps = files.map((file) => file.split('-', 1)[0]).sort();
  expect(MIGRATIONS.map(({ name }) => /\d+$/.exec(name)?.[0])).toEqual(timestamps);
});

test('The migrations make the table that the entity declares', async () => {
  const { upQueries } = await service.app.get(DataSource).driver.createSchemaBuilder().log();
  expect(upQueries.map(({ query }) => query)).toEqual([]);
});

test.each(MEMBERS)('%s is stored in the column of its name', async (member) => {
  const plant = newPlant();
  expect((await create(plant)).status).toBe(200);
  expect(String((await stored(plant.id))?.[member])).toBe(String(plant[member]));
});

test.each(MEMBERS.filter((member) => member in Plant.properties))('%s is in the answer', async (member) => {
  const plant = newPlant();
  expect((await create(plant)).json).toMatchObject({ [member]: plant[member] });
});

test.each(MEMBERS.filter((member) => member !== 'id'))('another %s is a conflict', async (member) => {
  const plant = newPlant();
  expect((await create(plant)).status).toBe(200);
  expect((await create(plant)).status).toBe(200);
  expectError(await create({ ...plant, [member]: newPlant()[member] }), 400, 409);
});

test.each(
  MEMBERS.filter((member) => NewPlant.properties[member]?.type === 'string').flatMap((member) => [
    [member, 'U+0000', '\\u0000'],
    [member, 'a lone surrogate', '\\ud800'],
  ]),
)('%s with %s, which PostgreSQL cannot store, is refused by name', async (member, _, escaped) => {
  const plant = newPlant();
  const answer = await post(
    service.port,
    JSON.stringify({ ...plant, [member]: 'ESCAPED' }).replace('ESCAPED', escaped),
  );
  expectError(answer, 400);
  expect(answer.text).toContain(`"message":"${member} must `);
  expect(await stored(plant.id)).toBeUndefined();
});

test.each(OPTIONAL)('%s may be omitted; then a repeat that has it is a conflict', async (member) => {
  const plant: Record<string, unknown> = { ...newPlant(), [member]: undefined };
  const answer = await create(plant);
  expect(answer.status).toBe(200);
  expect(answer.json).not.toHaveProperty(member);
  expect((await stored(plant.id))?.[member]).toBeNull();
  expect((await create(plant)).status).toBe(200);
  expectError(await create({ ...plant, [member]: newPlant()[member] }), 400, 409);
});
