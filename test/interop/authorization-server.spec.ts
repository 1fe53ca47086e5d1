import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { jest } from '@jest/globals';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { expectError, post } from '../support/requests.js';
import { startService, unusedId, type TestService } from '../support/service.js';

// The provider warns of Node.js 20 and of its store in memory. Neither matters here.
jest.spyOn(console, 'warn').mockImplementation(() => undefined);
const { Provider } = await import('oidc-provider');

const AUDIENCE = 'https://plants.example';
const CLIENT = { id: 'greenhouse', secret: 'greenhouse-secret' };

/** oidc-provider, a certified authorization server, with signing keys that a test can change. */
class AuthorizationServer {
  issuer = '';
  #keys: JWK[] = [];
  readonly #server: Server = createServer();

  async start(): Promise<void> {
    await new Promise<void>((done) => this.#server.listen(0, '127.0.0.1', done));
    this.issuer = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    await this.rotate();
  }

  /** Signs later tokens with a new key. The old keys stay published. */
  async rotate(): Promise<void> {
    const { privateKey } = await generateKeyPair('ES256', { extractable: true });
    const key = {
      ...(await exportJWK(privateKey)),
      alg: 'ES256',
      use: 'sig',
      kid: `key-${this.#keys.length}`,
    };
    this.#keys = [key, ...this.#keys];
    const provider = new Provider(this.issuer, {
      jwks: { keys: this.#keys },
      cookies: { keys: ['a-key-for-cookies'] },
      ttl: { ClientCredentials: 300 },
      clients: [
        {
          client_id: CLIENT.id,
          client_secret: CLIENT.secret,
          grant_types: ['client_credentials'],
          response_types: [],
          redirect_uris: [],
          id_token_signed_response_alg: 'ES256',
        },
      ],
      features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: (_, resource) => ({
            audience: resource,
            scope: 'plants:create',
            accessTokenFormat: 'jwt',
            jwt: { sign: { alg: 'ES256' } },
          }),
        },
      },
    });
    const handle = provider.callback();
    this.#server
      .removeAllListeners('request')
      .on('request', (request, response) => void handle(request, response));
  }

  /** Gets a token for one resource with client credentials (RFC 6749 section 4.4, RFC 8707). */
  async issueToken(resource = AUDIENCE): Promise<string> {
    const response = await fetch(`${this.issuer}/token`, {
      method: 'POST',
      headers: { Authorization: `Basic ${btoa(`${CLIENT.id}:${CLIENT.secret}`)}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', resource, scope: 'plants:create' }),
    });
    const answer = (await response.json()) as { access_token?: string };
    if (answer.access_token === undefined) throw new Error(JSON.stringify(answer));
    return answer.access_token;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }
}

const authorizationServer = new AuthorizationServer();
let service: TestService;

beforeAll(async () => {
  await authorizationServer.start();
  const { issuer } = authorizationServer;
  service = await startService({
    env: { JWT_JWKS_URL: `${issuer}/jwks`, JWT_ISSUER: issuer, JWT_AUDIENCE: AUDIENCE },
  });
});
afterAll(async () => {
  await service.stop();
  await authorizationServer.stop();
});

const create = (token: string) =>
  post(service.port, `{"id":${unusedId()},"name":"a"}`, { Authorization: `Bearer ${token}` });

test('A client creates plants with a token of the authorization server', async () => {
  const token = await authorizationServer.issueToken();
  expect(await create(token)).toMatchObject({ status: 200, text: '{"name":"a"}' });
  expect(await create(token)).toMatchObject({ status: 200 });
  expect(service.logs()).toContain(`"subject":"${CLIENT.id}"`);
  expect(service.logs()).not.toContain(token.slice(-20));
});

test('A token for another resource is refused', async () => {
  expectError(await create(await authorizationServer.issueToken('https://animals.example')), 401);
});

test('Old and new tokens are accepted after the signing key changes', async () => {
  const before = await authorizationServer.issueToken();
  await authorizationServer.rotate();
  // The service fetches the keys for an unknown one at most once a second.
  await new Promise((done) => setTimeout(done, 1_000));
  const after = await authorizationServer.issueToken();
  for (const token of [after, before]) expect(await create(token)).toMatchObject({ status: 200 });
});

test('Tokens are accepted while the authorization server is down', async () => {
  const tokens = [await authorizationServer.issueToken(), await authorizationServer.issueToken()];
  await create(tokens[0] as string);
  await authorizationServer.stop();
  for (const token of tokens) expect(await create(token)).toMatchObject({ status: 200 });
});
