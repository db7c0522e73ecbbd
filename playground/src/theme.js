// Before the first paint: the colours that were chosen here before, if any; otherwise the system's.
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be switched off.
}
