// Fastify and pg, one INSERT per request.
import pg from 'pg';
import { servePlants } from './fastify-plants.js';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });

await servePlants(({ id, name, tag }) =>
  pool.query({
    name: 'create-plant',
    text: 'INSERT INTO plants (id, name, tag) VALUES ($1, $2, $3)',
    values: [id, name, tag],
  }),
);
