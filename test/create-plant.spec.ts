import { post } from './support/requests.js';
import { countRows, rowOf, startService, unusedId, type TestService } from './support/service.js';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

const create = (body: string) => post(service.port, body);

describe('createPlant', () => {
  test('answers 200 with the name and the tag, and stores the plant', async () => {
    const id = unusedId();
    const response = await create(`{"id":${id},"name":"Monstera","tag":"indoor"}`);
    expect(response.status).toBe(200);
    expect(response.text).toBe('{"name":"Monstera","tag":"indoor"}');
    expect(await rowOf(service, id)).toEqual({ id: id.toString(), name: 'Monstera', tag: 'indoor' });
  });

  test('omits a tag that was omitted, and keeps an empty one', async () => {
    const [without, withEmpty] = [unusedId(), unusedId()];
    expect((await create(`{"id":${without},"name":"a"}`)).text).toBe('{"name":"a"}');
    expect((await create(`{"id":${withEmpty},"name":"","tag":""}`)).text).toBe('{"name":"","tag":""}');
    expect(await rowOf(service, without)).toEqual({ id: without.toString(), name: 'a', tag: null });
    expect(await rowOf(service, withEmpty)).toEqual({ id: withEmpty.toString(), name: '', tag: '' });
  });

  test('answers a repeated create with 200 and stores one row', async () => {
    const body = `{"id":${unusedId()},"name":"a","tag":"T"}`;
    await create(body);
    const before = await countRows(service);
    const again = await create(body);
    expect(again.status).toBe(200);
    expect(again.text).toBe('{"name":"a","tag":"T"}');
    expect(await countRows(service)).toBe(before);
  });

  test.each([
    ['another name', '"name":"b","tag":"T"'],
    ['another tag', '"name":"a","tag":"U"'],
    ['no tag', '"name":"a"'],
    ['an empty tag', '"name":"a","tag":""'],
  ])('refuses a taken id with %s, and does not change the plant', async (_, members) => {
    const id = unusedId();
    await create(`{"id":${id},"name":"a","tag":"T"}`);
    const response = await create(`{"id":${id},${members}}`);
    expect(response.status).toBe(400);
    expect(response.json).toEqual({
      error: 409,
      message: 'id is taken by another plant, with another name or tag.',
    });
    expect(await rowOf(service, id)).toEqual({ id: id.toString(), name: 'a', tag: 'T' });
  });

  test('answers 40 concurrent creates of one plant with 200 and stores one row', async () => {
    const id = unusedId();
    const responses = await Promise.all(
      Array.from({ length: 40 }, () => create(`{"id":${id},"name":"same"}`)),
    );
    expect(responses.map(({ status, text }) => `${status} ${text}`)).toEqual(
      Array(40).fill('200 {"name":"same"}'),
    );
    expect(await rowOf(service, id)).toEqual({ id: id.toString(), name: 'same', tag: null });
  });

  test('stores one of 40 concurrent plants with one id, and refuses the others', async () => {
    const id = unusedId();
    const responses = await Promise.all(
      Array.from({ length: 40 }, (_, index) => create(`{"id":${id},"name":"plant ${index}"}`)),
    );
    const winners = responses.filter(({ status }) => status === 200);
    const losers = responses.filter(
      ({ status, json }) => status === 400 && (json as { error: number }).error === 409,
    );
    expect([winners.length, losers.length]).toEqual([1, 39]);
    expect((await rowOf(service, id))?.name).toBe((winners[0]?.json as { name: string }).name);
  });

  test('ignores members that the contract does not name', async () => {
    const id = unusedId();
    const response = await create(
      `{"extra":{"name":"x"},"id":${id},"name":"a","Name":"b","created_at":"1999-01-01"}`,
    );
    expect(response.text).toBe('{"name":"a"}');
  });
});
