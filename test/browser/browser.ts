import { chromium, type Browser, type Page } from 'playwright-core';
import { programPath } from '../support/machine.js';

/** Debian's Chromium as root, without anything that it does for itself; `*.example` is this machine. */
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--host-resolver-rules=MAP *.example 127.0.0.1',
];

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: programPath('chromium') as string, args: ARGUMENTS });
}

/** A page in a browser profile of its own. */
export interface WatchedPage {
  page: Page;
  /** What a developer would see as wrong: console errors and warnings, exceptions, requests that failed or left the page's host. */
  complaints: string[];
}

export async function openPage(browser: Browser, url: string, width = 1280): Promise<WatchedPage> {
  const page = await browser.newPage({ viewport: { width, height: 900 } });
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('requestfailed', (request) => complaints.push(`failed: ${request.url()}`));
  page.on('request', (request) => {
    const { protocol, host } = new URL(request.url());
    if (protocol !== 'data:' && host !== new URL(url).host) complaints.push(`elsewhere: ${request.url()}`);
  });
  await page.goto(url);
  return { page, complaints };
}
