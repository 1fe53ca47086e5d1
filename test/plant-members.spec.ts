import { readFileSync } from 'node:fs';
import { NewPlantDto } from '../src/plants/new-plant.dto.js';
import { memberNames } from '../src/json-body/dto-validation.pipe.js';
import { expectError, post } from './support/requests.js';
import { startService, unusedId, type TestService } from './support/service.js';

// Each member of NewPlant must be stored in its column, compared with that of a repeat, and answered. These tests fail if
// the code forgets a member in one of these places.

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

test.each(OPTIONAL)('%s may be omitted; then a repeat that has it is a conflict', async (member) => {
  const plant: Record<string, unknown> = { ...newPlant(), [member]: undefined };
  const answer = await create(plant);
  expect(answer.status).toBe(200);
  expect(answer.json).not.toHaveProperty(member);
  expect((await stored(plant.id))?.[member]).toBeNull();
  expect((await create(plant)).status).toBe(200);
  expectError(await create({ ...plant, [member]: newPlant()[member] }), 400, 409);
});
