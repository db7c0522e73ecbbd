// A real browser on the built playground.
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import puppeteer from "puppeteer-core";
import { serve } from "../serve.mjs";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/** The browser of CHROMIUM, or the first that is found. */
export function chromium(env = process.env) {
  if (env.CHROMIUM) return env.CHROMIUM;
  const places = (env.PATH ?? "").split(delimiter).flatMap((folder) => NAMES.map((name) => join(folder, name)));
  const found = places.find((place) => existsSync(place));
  if (!found) throw new Error("no browser: install chromium, or name one by CHROMIUM");
  return found;
}

export async function start() {
  const { server, url } = await serve();
  const browser = await puppeteer.launch({ executablePath: chromium(), headless: true, args: ["--no-sandbox"] });
  return {
    url,
    browser,
    async stop() {
      await browser.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A page with storage of its own, and lists of what went wrong in it and what it asked for. */
export async function open(
  { browser, url },
  { fragment = "", width = 1440, height = 900, scheme = "light", prepare } = {},
) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const complaints = [];
  const requests = [];
  page.on("console", (message) => {
    if (["error", "warn", "issue"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => requests.push(request.url()));
  page.on("requestfailed", (request) => complaints.push(`${request.url()} failed`));
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await prepare?.(page, context);
  await page.goto(url + fragment);
  await page.waitForSelector("html[data-state=ready]");
  return { page, context, complaints, requests };
}
