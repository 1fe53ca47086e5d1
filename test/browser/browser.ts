import { chromium, type Browser, type Page } from 'playwright-core';
import { programPath } from '../support/machine.js';

/** Lets Chromium run as root, without its own background traffic, and resolves `*.example` to this machine. */
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

/** A page in a new browser profile. */
interface WatchedPage {
  page: Page;
  /** Console errors and warnings, exceptions, failed requests, and requests to another host. */
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
