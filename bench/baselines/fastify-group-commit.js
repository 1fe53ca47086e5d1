// Fastify with the service's own group commit over pg.
import { commits } from './group-commit.js';
import { servePlants } from './fastify-plants.js';

await servePlants(async ({ id, name, tag }) => {
  const result = await commits.create({ id: BigInt(id), name, tag: tag ?? null });
  if (result === 'conflict') throw new Error('The id is taken');
});
