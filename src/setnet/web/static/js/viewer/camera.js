// File, camera, settings and place of a photo in words.

const short = (number) => number.toLocaleString("en", { maximumFractionDigits: 1, useGrouping: false });
const place = (degrees, sides) => `${Math.abs(degrees).toFixed(5)}° ${sides[degrees < 0 ? 1 : 0]}`;

export const fileSize = (bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${short(bytes / 1e6)} MB`);

/** @param {import("../api.js").Schemas["Camera"]} facts */
export function inWords({ camera, lens, exposure, aperture, iso, focal_length, latitude, longitude }) {
  const settings = [
    exposure && (exposure < 0.3 ? `1/${Math.round(1 / exposure)} s` : `${short(exposure)} s`),
    aperture && `f/${short(aperture)}`,
    iso && `ISO ${short(iso)}`,
    focal_length && `${short(focal_length)} mm`,
  ];
  const isPlaced = typeof latitude === "number" && typeof longitude === "number";
  return [
    [camera, lens].filter(Boolean).join(" · "),
    settings.filter(Boolean).join(" · "),
    isPlaced ? `${place(latitude, "NS")}, ${place(longitude, "EW")}` : "",
  ].filter(Boolean);
}
