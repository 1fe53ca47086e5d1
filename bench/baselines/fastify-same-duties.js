// Fastify with every duty that the service has in a create: the exact id and text, names that appear twice, the request
// id, the stored id, metrics, security headers, and tokens that are cached by their digests. The parser, the metrics and
// the group commit are the service's own, so the rest of the service's cost is that of its framework, its framing of
// requests and its time limits.
import { hash, timingSafeEqual } from 'node:crypto';
import { isUtf8 } from 'node:buffer';
import fastify from 'fastify';
import { LRUCache } from 'lru-cache';
import { ExactObject, parseExactJson } from '../../dist/src/json-body/exact-json.js';
import { Metrics } from '../../dist/src/operations/metrics.js';
import { PlantsMetrics } from '../../dist/src/plants/plants.metrics.js';
import { requestIdOf } from '../../dist/src/operations/request-id.js';
import { commits } from './group-commit.js';

const MAX_INT64 = 2n ** 63n - 1n;

const acceptedDigest = hash('sha256', process.env.ACCESS_TOKEN, 'buffer');
const remembered = new LRUCache({ max: 1_000, ttl: 60_000 });
const metrics = new Metrics(true);
const plantsMetrics = new PlantsMetrics(metrics);

const app = fastify({ genReqId: requestIdOf });

app.addHook('onRequest', (request, reply, done) => {
  reply.headers({
    'X-Request-Id': request.id,
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'no-store',
    'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  });
  const { authorization = '' } = request.headers;
  const digest = hash('sha256', authorization, 'base64');
  if (remembered.get(digest) === undefined) {
    const token = authorization.replace(/^bearer +/i, '');
    if (!timingSafeEqual(hash('sha256', token, 'buffer'), acceptedDigest)) {
      reply.code(401).send({ error: 401, message: 'The bearer token is not valid.' });
      return;
    }
    remembered.set(digest, {});
  }
  done();
});

app.addHook('onResponse', (request, reply, done) => {
  metrics.observeRequest(request.method, request.routeOptions.url, reply.statusCode, reply.elapsedTime);
  done();
});

app.removeAllContentTypeParsers();
app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
  try {
    if (!isUtf8(body)) throw new Error('The body is not UTF-8 text');
    done(null, parseExactJson(body.toString()));
  } catch (error) {
    error.statusCode = 400;
    done(error);
  }
});

const isStorable = (text) => typeof text === 'string' && !text.includes('\0') && text.isWellFormed();

/** @returns the plant, or undefined if a member is missing, of another type or out of range. */
function plantOf(body) {
  if (!(body instanceof ExactObject)) return undefined;
  const id = body.get('id');
  const name = body.get('name');
  const tag = body.get('tag');
  const isPlant =
    typeof id === 'bigint' &&
    id <= MAX_INT64 &&
    id >= -MAX_INT64 - 1n &&
    isStorable(name) &&
    (tag === undefined || isStorable(tag));
  return isPlant ? { id, name, tag } : undefined;
}

const response = {
  200: {
    type: 'object',
    required: ['name'],
    properties: { name: { type: 'string' }, tag: { type: 'string' } },
  },
};

app.post('/plants', { schema: { response } }, async (request, reply) => {
  const plant = plantOf(request.body);
  if (plant === undefined) return reply.code(400).send({ error: 422, message: 'Not a plant.' });
  const { id, name, tag } = plant;
  const result = await commits.create({ id, name, tag: tag ?? null });
  if (result === 'conflict') return reply.code(400).send({ error: 409, message: 'id is taken.' });
  plantsMetrics.countCreate(result);
  reply.header('Plant-Id', id.toString());
  return { name, tag };
});

await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });
