import { readFileSync } from 'node:fs';
import { Contract } from './support/contract.js';

const openapi = JSON.parse(readFileSync('openapi.json', 'utf8')) as { paths: Record<string, object> };

const response = (status: number, text: string, headers: Record<string, string> = {}) => ({
  method: 'post',
  path: '/plants',
  status,
  headers: { 'content-type': 'application/json', ...(status === 200 && { 'plant-id': '1' }), ...headers },
  text,
});
const ERROR = '{"error":400,"message":"a"}';

test('A response that conforms to the document has no violation', () => {
  const contract = new Contract(openapi);
  const good = [
    response(200, '{"name":"a"}'),
    response(200, '{"name":"a","tag":"","more":1}', { 'plant-id': '-9223372036854775808' }),
    response(400, ERROR, { 'content-type': 'Application/JSON; charset=utf-8' }),
    response(401, ERROR, { 'www-authenticate': 'Bearer' }),
    response(503, ERROR, { 'retry-after': '1' }),
  ].map((one) => contract.judge(one));
  expect(good.map(({ violations }) => violations)).toEqual([[], [], [], [], []]);
  expect(new Set(good.map(({ by }) => by))).toEqual(new Set(contract.declared));
});

test.each<[what: string, outside: ReturnType<typeof response>, violation: string]>([
  ['a name of another type', response(200, '{"name":5}'), 'the body/name must be string'],
  ['a tag of null', response(200, '{"name":"a","tag":null}'), 'the body/tag must be string'],
  ['no name', response(200, '{"tag":"a"}'), "the body must have required property 'name'"],
  ['a list', response(200, '[]'), 'the body must be object'],
  [
    'no Plant-Id',
    { ...response(200, '{"name":"a"}'), headers: { 'content-type': 'application/json' } },
    'Plant-Id is missing',
  ],
  ['another Plant-Id', response(200, '{"name":"a"}', { 'plant-id': '01' }), 'Plant-Id must match pattern'],
  [
    'an error that is not an int32',
    response(400, '{"error":4000000000,"message":"a"}'),
    'the body/error must match format "int32"',
  ],
  [
    'an error that is a string',
    response(400, '{"error":"Bad Request","message":"a"}'),
    'the body/error must be integer',
  ],
  ['a list of messages', response(400, '{"error":400,"message":["a"]}'), 'the body/message must be string'],
  [
    'another media type',
    response(400, ERROR, { 'content-type': 'text/html' }),
    'the media type text/html is not declared',
  ],
  ['an incomplete body', response(400, '{"error":4'), 'the body is not JSON'],
  ['no body', response(400, ''), 'the body is not JSON'],
  [
    'a Retry-After that is a date',
    response(503, ERROR, { 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' }),
    'Retry-After must be integer',
  ],
  ['a Retry-After of 0', response(503, ERROR, { 'retry-after': '0' }), 'Retry-After must be >= 1'],
  ['another status', response(422, ERROR), 'the status 422 is not declared'],
  ['another status of success', response(201, '{"name":"a"}'), 'the status 201 is not declared'],
  ['another path', { ...response(200, '{"name":"a"}'), path: '/plants/1' }, 'post /plants/1 is no operation'],
])('A response that does not conform has a violation: %s', (_, outside, violation) => {
  const { violations } = new Contract(openapi).judge(outside);
  expect(violations.join('\n')).toContain(violation);
});

test('A path matches the template with the fewest parameters', () => {
  const operation = (status: string) => ({ get: { responses: { [status]: { description: '' } } } });
  const paths = {
    '/plants/{id}': operation('200'),
    '/plants/mine': operation('204'),
    '/{a}/{b}.json': operation('2XX'),
  };
  const contract = new Contract({ ...openapi, paths });
  const by = (path: string, status: number) =>
    contract.judge({ method: 'get', path, status, headers: {}, text: '' });
  expect(by('/plants/7', 200)).toEqual({ by: 'GET /plants/{id} 200', violations: [] });
  expect(by('/plants/mine', 204)).toEqual({ by: 'GET /plants/mine 204', violations: [] });
  expect(by('/a/b.json', 206)).toEqual({ by: 'GET /{a}/{b}.json 2XX', violations: [] });
  expect(by('/plants/7/8', 200).violations).toEqual(['get /plants/7/8 is no operation']);
  expect(
    contract.judge({ method: 'get', path: '/plants/7', status: 200, headers: {}, text: 'x' }).violations,
  ).toEqual(['a body is not declared']);
});

test('An unknown keyword or format is an error, because it would check nothing', () => {
  const withTag = (tag: object) => {
    const changed = structuredClone(openapi) as unknown as {
      components: { schemas: { Plant: { properties: { tag: object } } } };
    };
    changed.components.schemas.Plant.properties.tag = tag;
    return () => new Contract(changed).judge(response(200, '{"name":"a","tag":"b"}'));
  };
  expect(withTag({ type: 'string', maxLenght: 1 })).toThrow('maxLenght');
  expect(withTag({ type: 'string', format: 'tagg' })).toThrow('tagg');
});
