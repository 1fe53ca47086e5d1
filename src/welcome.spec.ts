import { loadConfig } from './config/config.js';
import { welcome } from './welcome.js';

test.each([
  ['the default', {}, 'http://127.0.0.1:8080'],
  ['every interface', { HOST: '0.0.0.0' }, 'http://localhost:8080'],
  ['an IPv6 address', { HOST: '::1' }, 'http://[::1]:8080'],
  ['BASE_URL', { BASE_URL: 'https://a.example/store/' }, 'https://a.example/store'],
])('The greeting names the address: %s', (_, environment, base) => {
  const text = welcome(loadConfig(environment).http, 8080, 'TOKEN');
  expect(text).toContain(`Plant Store listens on ${base}\nSwagger UI: ${base}/docs\n`);
  expect(text).toContain(`curl -X POST ${base}/plants -H 'Authorization: Bearer TOKEN'`);
});

test('Without a one-time token and Swagger UI the greeting has neither', () => {
  expect(welcome(loadConfig({ DOCS: 'off' }).http, 8080)).toBe(
    '\nPlant Store listens on http://127.0.0.1:8080\n\n',
  );
});
