import { createHash } from 'node:crypto';
import { createTestDatabase, type TestDatabase } from './support/database.js';
import { expectError, post } from './support/requests.js';
import { startService, unusedId, type TestService } from './support/service.js';

const OLD = 'old-token-SECRET-8f2c';
const NEW = 'new-token-SECRET-41aa';
const digestOf = (token: string) => `sha256:${createHash('sha256').update(token).digest('hex')}`;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

async function withTokens(tokens: string, use: (service: TestService) => Promise<void>): Promise<void> {
  const service = await startService({ database, env: { ACCESS_TOKENS: tokens } });
  try {
    await use(service);
    expect(service.logs()).not.toContain('SECRET');
  } finally {
    await service.stop();
  }
}

const create = (service: TestService, token: string) =>
  post(service.port, `{"id":${unusedId()},"name":"a"}`, { Authorization: `Bearer ${token}` });

// Each line is a restart. A client that changes its token during the second is never refused.
test.each([
  ['the old token', OLD, [OLD], [NEW]],
  ['the old token and the digest of the new one', `${OLD}, ${digestOf(NEW)}`, [OLD, NEW], []],
  ['the digest of the new token', digestOf(NEW).toUpperCase().replace('SHA256', 'sha256'), [NEW], [OLD]],
])('ACCESS_TOKENS may be %s', async (_, tokens, accepted, refused) => {
  await withTokens(tokens, async (service) => {
    for (const token of accepted) expect(await create(service, token)).toMatchObject({ status: 200 });
    for (const token of refused) expectError(await create(service, token), 401);
  });
});

test('A digest is not accepted as a token', async () => {
  await withTokens(digestOf(NEW), async (service) => {
    for (const token of [digestOf(NEW), digestOf(NEW).slice('sha256:'.length)]) {
      expectError(await create(service, token), 401);
    }
  });
});
