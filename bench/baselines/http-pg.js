// Node.js's http and pg alone, one INSERT per request. The latency of a lone request is compared with this.
import { Buffer } from 'node:buffer';
import { createServer } from 'node:http';
import pg from 'pg';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
const authorization = `Bearer ${process.env.ACCESS_TOKEN}`;

function isNewPlant(value) {
  return (
    Number.isSafeInteger(value?.id) &&
    typeof value.name === 'string' &&
    (value.tag === undefined || typeof value.tag === 'string')
  );
}

function answer(response, status, body) {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(text),
  });
  response.end(text);
}

async function createPlant(text, response) {
  try {
    const plant = JSON.parse(text);
    if (!isNewPlant(plant)) return answer(response, 400, { error: 422, message: 'Not a plant.' });
    const { id, name, tag } = plant;
    await pool.query({
      name: 'create-plant',
      text: 'INSERT INTO plants (id, name, tag) VALUES ($1, $2, $3)',
      values: [id, name, tag],
    });
    answer(response, 200, { name, tag });
  } catch (error) {
    answer(response, error instanceof SyntaxError ? 400 : 500, { error: 500, message: 'Failed.' });
  }
}

const server = createServer((request, response) => {
  if (request.headers.authorization !== authorization) {
    return answer(response, 401, { error: 401, message: 'A token is needed.' });
  }
  if (request.method !== 'POST' || request.url !== '/plants') {
    return answer(response, 404, { error: 404, message: 'There is nothing here.' });
  }
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => createPlant(Buffer.concat(chunks).toString(), response));
});
server.listen(Number(process.env.PORT), '127.0.0.1');
