import type { NewPlantDto } from './new-plant.dto.js';

/** A plant as it is stored: every member of NewPlant, `null` for one that was left out. */
export type StoredPlant = {
  [Member in keyof NewPlantDto]-?: undefined extends NewPlantDto[Member]
    ? Exclude<NewPlantDto[Member], undefined> | null
    : NewPlantDto[Member];
};

type Member = keyof StoredPlant;

/** The column of each member of NewPlant. Every statement is derived from this list. */
const COLUMN_OF: Readonly<Record<Member, string>> = { id: 'id', name: 'name', tag: 'tag' };

const MEMBERS = Object.keys(COLUMN_OF) as Member[];

/** What may differ between two plants of one id, for a message: `name or tag`. */
export const DIFFERENCES = new Intl.ListFormat('en', { type: 'disjunction' }).format(
  MEMBERS.filter((member) => member !== 'id'),
);

/** The columns, in the order of {@link parametersOf}. */
export const COLUMNS = Object.values(COLUMN_OF);

/** The list of a SELECT. It gives a row the members' names. */
export const SELECTION = MEMBERS.map((member) => `${COLUMN_OF[member]} AS "${member}"`).join(', ');

/** The type of the result demands every member. */
export function toStored({ id, name, tag }: NewPlantDto): StoredPlant {
  return { id, name, tag: tag ?? null };
}

/** @param row as the driver reads it: a `bigint` column comes as text. */
export function fromRow(row: Omit<StoredPlant, 'id'> & { id: string }): StoredPlant {
  return { ...row, id: BigInt(row.id) };
}

/** @returns the parameters of an INSERT of these plants, row by row. */
export function parametersOf(plants: readonly StoredPlant[]): (string | null)[] {
  const parameters: (string | null)[] = [];
  for (const plant of plants)
    for (const member of MEMBERS) parameters.push(plant[member]?.toString() ?? null);
  return parameters;
}

/** Whether a create of `b` repeats the one that stored `a`. */
export function isSamePlant(a: StoredPlant, b: StoredPlant): boolean {
  return MEMBERS.every((member) => a[member] === b[member]);
}

/** @returns the size of a plant in memory, in characters of text. */
export function charactersOf(plant: StoredPlant): number {
  let characters = 0;
  for (const member of MEMBERS) {
    const value = plant[member];
    if (typeof value === 'string') characters += value.length;
  }
  return characters;
}
