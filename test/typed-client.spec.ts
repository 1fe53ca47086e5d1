import createClient from 'openapi-fetch';
import type { paths } from '../src/openapi/contract.generated.js';
import { rowOf, startService, TOKEN, unusedId, type TestService } from './support/service.js';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

/** A client with names and types from openapi.json alone. */
const client = (token: string) =>
  createClient<paths>({ baseUrl: service.url, headers: { Authorization: `Bearer ${token}` } });

/** JSON.stringify cannot write a bigint, which is the type of an int64 in TypeScript. */
const bodySerializer = ({ id, ...text }: { id: bigint; name: string }) =>
  `{"id":${id},${JSON.stringify(text).slice(1)}`;

test('A client made from the document creates a plant', async () => {
  const id = unusedId();
  const { data, error } = await client(TOKEN).POST('/plants', {
    body: { id, name: 'Monstera', tag: 'indoor' },
    bodySerializer,
  });
  expect(error).toBeUndefined();
  expect(data?.name).toBe('Monstera');
  expect(data?.tag).toBe('indoor');
  expect(await rowOf(service, id)).toEqual({ id: id.toString(), name: 'Monstera', tag: 'indoor' });
});

test('A client made from the document knows the errors', async () => {
  const { data, error, response } = await client('nope').POST('/plants', {
    body: { id: 1n, name: 'a' },
    bodySerializer,
  });
  expect(data).toBeUndefined();
  expect(error?.error).toBe(401);
  expect(error?.message).toBe('The bearer token is invalid or has expired.');
  expect(response.status).toBe(401);
});
