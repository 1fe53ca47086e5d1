import { createHmac, generateKeyPairSync, randomUUID, KeyObject, sign } from 'node:crypto';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { jest } from '@jest/globals';
import {
  base64url,
  CompactEncrypt,
  exportJWK,
  exportSPKI,
  generateKeyPair,
  SignJWT,
  type CryptoKey,
  type JWK,
  type JWTPayload,
} from 'jose';
import { until } from './support/patience.js';
import { expectError, post } from './support/requests.js';
import { startService, unusedId, type TestService } from './support/service.js';

const ISSUER = 'https://issuer.example';
const AUDIENCE = 'plant-store';
const MINUTE_MS = 60_000;

interface Key {
  kid: string;
  alg: string;
  privateKey: CryptoKey;
  publicKey: CryptoKey;
}

async function makeKey(alg: string): Promise<Key> {
  return { kid: randomUUID(), alg, ...(await generateKeyPair(alg, { extractable: true })) };
}

const publicJwk = async ({ publicKey, kid }: Key): Promise<JWK> => ({
  ...(await exportJWK(publicKey)),
  kid,
  use: 'sig',
});

/** Publishes keys as an issuer does. `answer` replaces its answers. */
class KeyServer {
  keys: JWK[] = [];
  fetches = 0;
  answer: RequestListener | undefined;
  readonly #server: Server = createServer((request, response) => {
    this.fetches++;
    if (this.answer !== undefined) this.answer(request, response);
    else
      response.setHeader('Content-Type', 'application/jwk-set+json').end(JSON.stringify({ keys: this.keys }));
  });

  async listen(): Promise<void> {
    await new Promise<void>((done) => this.#server.listen(0, '127.0.0.1', done));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/jwks`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }
}

let rsa: Key;
let ec: Key;
let keyServer: KeyServer;
let service: TestService;

const TIMERS = [
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'setImmediate',
  'clearImmediate',
] as const;
// Fake the clocks before the service starts: the fake monotonic clock starts at 0, so the real one may be ahead of it.
beforeAll(() => {
  jest.useFakeTimers({
    doNotFake: [...TIMERS, 'nextTick', 'queueMicrotask', 'hrtime'],
  });
});

beforeAll(async () => {
  [rsa, ec] = await Promise.all([makeKey('RS256'), makeKey('ES256')]);
  keyServer = new KeyServer();
  await keyServer.listen();
  service = await startService({
    env: { JWT_JWKS_URL: keyServer.url, JWT_ISSUER: ISSUER, JWT_AUDIENCE: AUDIENCE },
  });
});
afterAll(async () => {
  await service.stop();
  await keyServer.close();
  jest.useRealTimers();
});

/** Moves the wall clock and the monotonic clock forward. Timers do not change. */
function passTime(milliseconds: number): void {
  jest.advanceTimersByTime(milliseconds);
}

beforeEach(async () => {
  keyServer.keys = await Promise.all([rsa, ec].map(publicJwk));
  keyServer.answer = undefined;
  // The service repeats a failed fetch after this time.
  passTime(MINUTE_MS);
});

const inSeconds = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;

function claims(changes: Record<string, unknown> = {}): JWTPayload {
  return { iss: ISSUER, aud: AUDIENCE, sub: 'gardener', exp: inSeconds(3600), jti: randomUUID(), ...changes };
}

function makeToken(key: Key, payload = claims(), header: Record<string, unknown> = {}): Promise<string> {
  return new SignJWT(payload)
    .setProtectedHeader({ alg: key.alg, kid: key.kid, ...header })
    .sign(key.privateKey);
}

/** Makes a JWT that jose would refuse to sign. */
function forge(header: object, signer: (input: string) => Buffer, payload: unknown = claims()): string {
  const input = [header, payload].map((part) => base64url.encode(JSON.stringify(part))).join('.');
  return `${input}.${signer(input).toString('base64url')}`;
}

const signByHand = (input: string) => sign('sha256', Buffer.from(input), KeyObject.from(rsa.privateKey));

const create = (token: string) =>
  post(service.port, `{"id":${unusedId()},"name":"a"}`, { Authorization: `Bearer ${token}` });

async function expectAccepted(token: string): Promise<void> {
  expect(await create(token)).toMatchObject({ status: 200, text: '{"name":"a"}' });
}

async function expectRefused(token: string): Promise<void> {
  const answer = await create(token);
  expectError(answer, 401);
  expect(answer.headers['www-authenticate']).toBe('Bearer realm="plant-store", error="invalid_token"');
}

describe('A JWT is accepted', () => {
  test.each(['RS256', 'PS256', 'ES256', 'EdDSA'])('with %s', async (alg) => {
    const key = await makeKey(alg);
    keyServer.keys.push(await publicJwk(key));
    passTime(MINUTE_MS);
    await expectAccepted(await makeToken(key));
  });

  test.each([
    ['for one of several audiences', () => ({ aud: ['another', AUDIENCE] })],
    ['that expired 20 s ago', () => ({ exp: inSeconds(-20) })],
    ['that becomes valid in 20 s', () => ({ nbf: inSeconds(20) })],
    ['without a subject', () => ({ sub: undefined })],
  ])('%s', async (_, changes) => expectAccepted(await makeToken(ec, claims(changes()))));

  test('whose header names no key, if only one key fits', async () => {
    await expectAccepted(await makeToken(ec, claims(), { kid: undefined }));
  });

  test('that is made by hand, like the refused ones below', async () => {
    await expectAccepted(forge({ alg: 'RS256', kid: rsa.kid }, signByHand));
  });

  test.each(['at+jwt', 'application/at+jwt', 'AT+JWT', 'JWT'])(
    'with the type of an access token (RFC 9068) or of any JWT: %s',
    async (typ) => {
      await expectAccepted(await makeToken(ec, claims(), { typ }));
    },
  );

  test('and its subject, but not the token, is in the log of the request', async () => {
    const token = await makeToken(ec, claims({ sub: 'client-4711' }));
    await expectAccepted(token);
    expect(service.logs()).toContain('"subject":"client-4711"');
    expect(service.logs()).not.toContain(token.split('.')[2]);
  });

  test('until it expires, even if its verdict is still in the cache', async () => {
    // With the clock tolerance of 30 s it is valid for another 6 s. The cache keeps a verdict for 60 s.
    const token = await makeToken(ec, claims({ exp: inSeconds(-24) }));
    await expectAccepted(token);
    passTime(6_500);
    await expectRefused(token);
  });
});

describe('A JWT is refused', () => {
  test.each(['logout+jwt', 'dpop+jwt', 'id+jwt', 'application/jwt+x', '', 7, null])(
    'with the type of something other than an access token: %j',
    async (typ) => {
      await expectRefused(forge({ alg: 'RS256', kid: rsa.kid, typ }, signByHand));
    },
  );

  test.each([
    ['that expired 40 s ago', () => ({ exp: inSeconds(-40) })],
    ['that becomes valid in 40 s', () => ({ nbf: inSeconds(40) })],
    ['without an expiration time', () => ({ exp: undefined })],
    ['whose expiration time is a string', () => ({ exp: '9999999999' })],
    ['of another issuer', () => ({ iss: `${ISSUER}/` })],
    ['without an issuer', () => ({ iss: undefined })],
    ['for another audience', () => ({ aud: 'another' })],
    ['without an audience', () => ({ aud: undefined })],
  ])('%s', async (_, changes) => expectRefused(await makeToken(ec, claims(changes()))));

  test.each(['RS384', 'RS512', 'PS384', 'PS512', 'ES384', 'ES512'])(
    'with %s, though the key is published',
    async (alg) => {
      const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
      const key = { kid: randomUUID(), alg, privateKey, publicKey };
      keyServer.keys.push(await publicJwk(key));
      passTime(MINUTE_MS);
      await expectRefused(await makeToken(key));
    },
  );

  test.each(['none', 'None', 'NONE', ''])('with the algorithm "%s" and no signature', async (alg) => {
    await expectRefused(forge({ alg, kid: ec.kid }, () => Buffer.alloc(0)));
  });

  test.each(['HS256', 'HS384', 'HS512'])('with %s and the public key as the secret', async (alg) => {
    const hash = alg.replace('HS', 'sha');
    const jwk = await publicJwk(rsa);
    const spki = await exportSPKI(rsa.publicKey);
    for (const secret of [spki, spki.trim(), JSON.stringify(jwk), String(jwk.n)]) {
      const signer = (input: string) => createHmac(hash, secret).update(input).digest();
      await expectRefused(forge({ alg, kid: rsa.kid }, signer));
    }
  });

  test('with HMAC and a secret that the issuer published by mistake', async () => {
    keyServer.keys.push({ kty: 'oct', kid: 'oct', alg: 'HS256', k: base64url.encode('secret') });
    passTime(MINUTE_MS);
    const signer = (input: string) => createHmac('sha256', 'secret').update(input).digest();
    await expectRefused(forge({ alg: 'HS256', kid: 'oct' }, signer));
  });

  test('with an RSA key of less than 2048 bits, even if the issuer publishes it', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 1024 });
    keyServer.keys.push({ ...publicKey.export({ format: 'jwk' }), kid: 'weak' });
    passTime(MINUTE_MS);
    await expectRefused(
      forge({ alg: 'RS256', kid: 'weak' }, (input) => sign('sha256', Buffer.from(input), privateKey)),
    );
  });

  test('signed by another key with the kid of a known one', async () => {
    await expectRefused(await makeToken({ ...(await makeKey('ES256')), kid: ec.kid }));
  });

  test('signed by a key in its own header, or at a URL in its header', async () => {
    const own = await makeKey('ES256');
    const jwk = await publicJwk(own);
    await expectRefused(await makeToken(own, claims(), { jwk }));
    await expectRefused(await makeToken(own, claims(), { jwk, kid: ec.kid }));
    await expectRefused(await makeToken(own, claims(), { jku: 'http://127.0.0.1:9/jwks', kid: ec.kid }));
  });

  test('whose payload was changed', async () => {
    const [header, , signature] = (await makeToken(ec)).split('.');
    const payload = base64url.encode(JSON.stringify(claims({ sub: 'somebody else' })));
    await expectRefused([header, payload, signature].join('.'));
  });

  test('with a critical extension', async () => {
    await expectRefused(forge({ alg: 'RS256', kid: rsa.kid, crit: ['x'], x: 1 }, signByHand));
  });

  test.each([
    ['an array', [1]],
    ['null', null],
    ['a string', 'plants'],
  ])('whose payload is %s', async (_, payload) => {
    await expectRefused(forge({ alg: 'RS256', kid: rsa.kid }, signByHand, payload));
  });

  test('that is encrypted', async () => {
    const { publicKey } = await generateKeyPair('ECDH-ES');
    const encrypted = new CompactEncrypt(Buffer.from(JSON.stringify(claims())));
    await expectRefused(
      await encrypted.setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: ec.kid }).encrypt(publicKey),
    );
  });

  test('that is cut or changed at any position', async () => {
    const token = await makeToken(ec);
    for (let at = 1; at < token.length; at += 7) {
      await expectRefused(token.slice(0, at));
      const other = token[at] === 'A' ? 'Q' : 'A';
      await expectRefused(`${token.slice(0, at)}${other}${token.slice(at + 1)}`);
    }
  });
});

describe('The keys', () => {
  test('are added and dropped as the issuer changes them, without a restart', async () => {
    const next = await makeKey('ES256');
    await expectRefused(await makeToken(next));
    keyServer.keys = [await publicJwk(next)];
    passTime(2_000);
    await expectAccepted(await makeToken(next));
    await expectRefused(await makeToken(ec));
  });

  test('are fetched again after ten minutes, so that a withdrawn one is dropped', async () => {
    const token = await makeToken(ec);
    await expectAccepted(token);
    keyServer.keys = keyServer.keys.filter(({ kid }) => kid !== ec.kid);
    passTime(11 * MINUTE_MS);
    await expectRefused(token);
    await expectRefused(await makeToken(ec));
  });

  test('are fetched a few times for many concurrent tokens with unknown keys, and each is refused', async () => {
    const before = keyServer.fetches;
    const stranger = await makeKey('ES256');
    const server = service.app.getHttpServer();
    const count = promisify(server.getConnections.bind(server));
    const allHaveArrived = until('all tokens have arrived', async () => (await count()) >= 50);
    keyServer.answer = (_, response) =>
      void allHaveArrived.then(() => response.end(JSON.stringify({ keys: keyServer.keys })));
    const tokens = await Promise.all(Array.from({ length: 50 }, () => makeToken(stranger)));
    await Promise.all(tokens.map(expectRefused));
    // Most tokens arrive during a fetch. Its answer may be older than they are, so they share another one.
    expect(keyServer.fetches - before).toBeLessThan(10);
  });

  test('are fetched again at once for a key that was just published', async () => {
    for (let round = 0; round < 5; round++) {
      const next = await makeKey('ES256');
      const token = await makeToken(next);
      await expectRefused(token);
      keyServer.keys.push(await publicJwk(next));
      await expectAccepted(token);
    }
  });

  test('are fetched at a limited rate for tokens with unknown keys; beyond it they are answered 503', async () => {
    const stranger = await makeKey('ES256');
    const before = keyServer.fetches;
    let refused = 0;
    while ((await create(await makeToken(stranger))).status === 401) refused++;
    expect([refused, keyServer.fetches - before]).toEqual([30, 30]);

    const next = await makeKey('ES256');
    keyServer.keys.push(await publicJwk(next));
    const token = await makeToken(next);
    const answer = await create(token);
    expectError(answer, 503);
    expect(answer.headers['retry-after']).toMatch(/^\d+$/);
    expect(answer.headers['www-authenticate']).toBeUndefined();
    await expectAccepted(await makeToken(ec));
    passTime(2_000);
    await expectAccepted(token);
  });

  test('age by the monotonic clock, even if the wall clock is set back', async () => {
    await expectAccepted(await makeToken(ec));
    const next = await makeKey('ES256');
    keyServer.keys = [await publicJwk(next)];
    jest.setSystemTime(Date.now() - 3 * 3600_000);
    try {
      await expectAccepted(await makeToken(next));
      await expectRefused(await makeToken(ec));
    } finally {
      jest.setSystemTime(Date.now() + 3 * 3600_000);
    }
  });

  test.each<[string, RequestListener]>([
    ['closes the connection', ({ socket }) => socket.destroy()],
    ['does not answer', () => undefined],
    ['fails', (_, response) => response.writeHead(500).end()],
    ['redirects', (_, response) => response.writeHead(302, { Location: '/elsewhere' }).end()],
    ['answers with HTML', (_, response) => response.end('<html>')],
    ['answers with other JSON', (_, response) => response.end('{}')],
  ])('still work if the issuer %s, and an unknown one is answered 503', async (_, answer) => {
    await expectAccepted(await makeToken(ec));
    // Now the known keys are due again.
    passTime(11 * MINUTE_MS);
    keyServer.answer = answer;
    const logsBefore = service.logs().length;
    const fetchesBefore = keyServer.fetches;

    await expectAccepted(await makeToken(ec));
    const next = await makeKey('ES256');
    for (let attempt = 0; attempt < 3; attempt++) {
      const unavailable = await create(await makeToken(next));
      expectError(unavailable, 503);
      expect(unavailable.headers['retry-after']).toBe('1');
      expect(unavailable.headers['www-authenticate']).toBeUndefined();
    }
    await expectAccepted(await makeToken(ec));
    await expectRefused(await makeToken({ ...next, kid: ec.kid }));
    // The service does not fetch or log for every request.
    expect(keyServer.fetches - fetchesBefore).toBe(1);
    const complaints = service.logs().slice(logsBefore).split('could not be fetched').length - 1;
    expect(complaints).toBe(1);

    keyServer.answer = undefined;
    keyServer.keys.push(await publicJwk(next));
    passTime(4_000);
    await expectAccepted(await makeToken(next));
  });
});

describe('JWT_SCOPE', () => {
  let scoped: TestService;
  beforeAll(async () => {
    scoped = await startService({
      env: {
        JWT_JWKS_URL: keyServer.url,
        JWT_ISSUER: ISSUER,
        JWT_AUDIENCE: AUDIENCE,
        JWT_SCOPE: 'plants:create plants:read',
      },
    });
  });
  afterAll(() => scoped.stop());

  test.each<[number, unknown]>([
    [200, 'plants:create plants:read'],
    [200, 'openid plants:read plants:create'],
    [401, 'plants:create'],
    [401, 'plants:create plants:reader'],
    [401, 'plants:create,plants:read'],
    [401, ''],
    [401, undefined],
    [401, ['plants:create', 'plants:read']],
  ])('answers %i to a token with the scope %j', async (status, scope) => {
    const token = await makeToken(ec, claims({ scope }));
    const answer = await post(scoped.port, `{"id":${unusedId()},"name":"a"}`, {
      Authorization: `Bearer ${token}`,
    });
    expect(answer.status).toBe(status);
  });
});
