import { mkdirSync } from 'node:fs';
import type { Browser, Page, Response } from 'playwright-core';
import { launchBrowser, openPage } from './browser.js';
import { GATEWAYS, startGateway, type Gateway } from '../support/gateway.js';
import { needs } from '../support/requirements.js';
import { withSecondOperation } from '../support/second-operation.js';
import { rowOf, startService, TOKEN, unusedId, type TestService } from '../support/service.js';

const SCREENSHOTS = 'artifacts/screenshots';
const MOST_TAB_STOPS = 60;
/** A script for the page: follows each of its links and returns the statuses. */
const FOLLOW_LINKS = `Promise.all([...document.querySelectorAll('a[href]')].map(async ({ href }) => (await fetch(href)).status))`;

interface Body {
  id: number;
  name: string;
  tag?: string;
}

const bodyField = (page: Page) => page.locator('textarea.body-param__text');
const exampleOf = async (page: Page) => JSON.parse(await bodyField(page).inputValue()) as Body;
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
/** The status that Swagger UI shows. */
const shownStatus = (page: Page) => page.locator('.live-responses-table .response .response-col_status');
const shownBody = async (page: Page) =>
  JSON.parse(await page.locator('.live-responses-table pre').first().innerText()) as unknown;
const screenshot = (page: Page, name: string) =>
  page.screenshot({ path: `${SCREENSHOTS}/${name}.png`, fullPage: true });

async function authorize(page: Page): Promise<void> {
  await button(page, 'Authorize').click();
  await page.getByLabel('auth-bearer-value').fill(TOKEN);
  await button(page, 'Apply credentials').click();
  await button(page, 'Close').click();
}

async function answerTo(page: Page, act: () => Promise<void>): Promise<Response> {
  const [response] = await Promise.all([
    page.waitForResponse((candidate) => candidate.request().method() === 'POST'),
    act(),
  ]);
  // Swagger UI shows the answer a moment later.
  await shownStatus(page)
    .and(page.getByText(String(response.status()), { exact: true }))
    .waitFor();
  return response;
}

const execute = (page: Page) => answerTo(page, () => button(page, 'Execute').click());

needs('chromium')('Swagger UI', () => {
  let browser: Browser;
  let service: TestService;
  beforeAll(async () => {
    mkdirSync(SCREENSHOTS, { recursive: true });
    [browser, service] = await Promise.all([launchBrowser(), startService()]);
  });
  afterAll(async () => {
    await browser.close();
    await service.stop();
  });

  test('leads a user from the root to a stored plant', async () => {
    const { page, complaints } = await openPage(browser, service.url);
    await button(page, 'Execute').waitFor();
    expect(page.url()).toBe(`${service.url}/docs`);
    expect(await page.title()).toBe('OpenAPI Plant Store');
    const text = await page.locator('body').innerText();
    expect(text).toContain('A plant store with one operation');
    expect(text).toContain('Get a bearer token');
    expect(text).toContain('1.0.0');
    expect(text.toLowerCase()).not.toMatch(/petstore|swagger/);
    await screenshot(page, 'opened-1280');

    await authorize(page);
    const example = await exampleOf(page);
    const plant = { name: example.name, tag: example.tag };
    for (let time = 1; time <= 2; time++) {
      expect((await execute(page)).status()).toBe(200);
      expect([await shownStatus(page).innerText(), await shownBody(page)]).toEqual(['200', plant]);
    }
    expect(await rowOf(service, BigInt(example.id))).toEqual({ id: String(example.id), ...plant });
    await screenshot(page, 'created-1280');

    await bodyField(page).fill(JSON.stringify({ ...example, name: 'Aloe' }));
    expect((await execute(page)).status()).toBe(400);
    expect(await shownBody(page)).toEqual({
      error: 409,
      message: 'id is taken by another plant, with another name or tag.',
    });
    await screenshot(page, 'refused-1280');
    // Chromium complains of each status from 400 on, and of nothing else.
    expect(complaints.splice(0)).toEqual([expect.stringContaining('status of 400')]);

    await bodyField(page).fill('{"id":9223372036854775807,"name":"exact"}');
    expect((await execute(page)).status()).toBe(200);
    expect(await rowOf(service, 9223372036854775807n)).toMatchObject({ id: '9223372036854775807' });

    // The page does not store the token, because every script of the origin could read it.
    expect(await page.evaluate('localStorage.length + sessionStorage.length')).toBe(0);
    await page.reload();
    await button(page, 'Execute').waitFor();
    expect((await execute(page)).status()).toBe(401);
    expect(complaints.splice(0)).toEqual([expect.stringContaining('status of 401')]);
  });

  test('shows parameters only for an operation that has some', async () => {
    const extended = await startService({ root: withSecondOperation });
    try {
      const { page } = await openPage(browser, `${extended.url}/docs`);
      await page.locator('#operations-default-readPlant table.parameters').getByText('id').first().waitFor();
      expect(await page.locator('.parameters-container:visible').count()).toBe(1);
    } finally {
      await extended.stop();
    }
  });

  test('shows the 401 to a user who has no token', async () => {
    const { page } = await openPage(browser, `${service.url}/docs`);
    expect((await execute(page)).status()).toBe(401);
    expect(await shownBody(page)).toEqual({
      error: 401,
      message: 'A bearer token is needed, in the Authorization header.',
    });
  });

  test.each(['http://localhost', 'http://127.0.0.1', 'http://plants.example'])(
    'works at %s without a warning of the browser',
    async (host) => {
      await createPlant(`${host}:${service.port}`);
    },
  );

  describe.each(GATEWAYS)('behind %s', (name) => {
    needs(name)('below a path prefix', () => {
      let gateway: Gateway;
      beforeAll(async () => {
        gateway = await startGateway(name, [service.port, service.port]);
      });
      afterAll(() => gateway.stop());

      test('works without a warning of the browser', async () => {
        await createPlant(`http://plants.example:${gateway.port}/store`);
      });
    });
  });

  /** Creates a plant in the page below the address, opens all of the page, and expects no complaint. */
  async function createPlant(address: string): Promise<void> {
    const { page, complaints } = await openPage(browser, `${address}/docs`);
    await authorize(page);
    expect((await execute(page)).url()).toBe(`${address}/plants`);
    expect(await shownStatus(page).innerText()).toBe('200');
    await openEverything(page);
    expect(await page.evaluate(FOLLOW_LINKS)).toEqual([200]);
    expect(complaints).toEqual([]);
    await page.close();
  }

  async function openEverything(page: Page): Promise<void> {
    for (const tab of await page.getByRole('tab', { name: 'Schema', exact: true }).all()) await tab.click();
    for (const fold of await page.locator('.models button[aria-expanded=false]').all()) await fold.click();
  }

  test('fits a screen of 400 px, even with everything open and an answer shown', async () => {
    const { page } = await openPage(browser, `${service.url}/docs`, 400);
    const overhang = () => page.evaluate('document.documentElement.scrollWidth - innerWidth');
    await button(page, 'Execute').waitFor();
    await screenshot(page, 'opened-400');
    expect(await overhang()).toBe(0);
    await button(page, 'Authorize').click();
    expect(await overhang()).toBe(0);
    await page.screenshot({ path: `${SCREENSHOTS}/authorize-400.png` });
    await button(page, 'Close').click();
    await authorize(page);
    await execute(page);
    await screenshot(page, 'created-400');
    expect(await overhang()).toBe(0);
    await openEverything(page);
    await screenshot(page, 'schemas-400');
    expect(await overhang()).toBe(0);
  });

  test('can be used with a keyboard alone', async () => {
    const id = unusedId();
    const { page, complaints } = await openPage(browser, `${service.url}/docs`);
    await button(page, 'Execute').waitFor();
    const tabTo = async (selector: string) => {
      const isThere = () => page.evaluate(`document.activeElement.matches(${JSON.stringify(selector)})`);
      for (let stop = 0; !(await isThere()); stop++) {
        if (stop === MOST_TAB_STOPS) throw new Error(`the keyboard does not lead to ${selector}`);
        await page.keyboard.press('Tab');
      }
      expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).not.toBe('none');
    };

    await tabTo('.btn.authorize');
    await page.keyboard.press('Enter');
    await page.keyboard.type(TOKEN);
    await page.keyboard.press('Enter');
    await tabTo('.btn-done');
    await page.keyboard.press('Enter');
    await tabTo('textarea');
    await page.keyboard.press('Control+A');
    await page.keyboard.type(`{"id":${id},"name":"typed"}`);
    await tabTo('.btn.execute');
    expect((await answerTo(page, () => page.keyboard.press('Enter'))).status()).toBe(200);
    expect(await rowOf(service, id)).toEqual({ id: id.toString(), name: 'typed', tag: null });
    expect(complaints).toEqual([]);
  });

  test('says so if the document cannot be loaded', async () => {
    const page = await browser.newPage();
    await page.route('**/openapi.json', (route) => route.abort());
    await page.goto(`${service.url}/docs`);
    await page.getByText('The service cannot be reached').waitFor();
  });
});
