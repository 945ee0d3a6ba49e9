"""What people say to a device: templates that expand into sentences, and the words to drill.

`{slot}` is replaced by a random entry of `SLOTS` (which may hold slots again), `{number:a-b}` by a
number in words, `{digits:a-b}` by that many random digits. `[text]` is kept half of the time.
"""

from __future__ import annotations

import random
import re
import zlib

from corpus import COMMANDS, DIGITS

_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()

SLOTS = {
    "on": ["on", "off"],
    "room": "kitchen,bedroom,living room,bathroom,garage,hall,hallway,office,dining room,basement,"
    "garden,attic,nursery,guest room,porch".split(","),
    "lamp": "light,lights,lamp,lamps,ceiling light,reading light,desk lamp".split(","),
    "color": "red,green,blue,white,yellow,orange,purple,pink,warm white,cold white".split(","),
    "device": "air conditioner,radio,heater,fan,television,seat heating,bluetooth,wifi,music,"
    "camera,alarm,headlights,wipers,defroster,coffee machine,dishwasher,washing machine,oven,"
    "heating,vacuum cleaner,robot,speaker,projector,sprinkler,humidifier,microphone".split(","),
    "opening": "window,door,trunk,sunroof,garage,garage door,left window,right window,curtains,"
    "blinds,front door,back door,gate,all windows,glove box,shutters".split(","),
    "place": "home,work,the airport,the nearest gas station,the office,the train station,"
    "the hospital,school,the supermarket,the nearest charging station,main street,"
    "the city center,the hotel,the parking lot,the museum,the bank,the post office,"
    "the pharmacy,the library,the beach,the bus stop,the university".split(","),
    "food": "a restaurant,a parking space,a coffee shop,a supermarket,a gas station,a hotel,"
    "a pharmacy,a bakery,a charging station,an atm,a toilet".split(","),
    "person": "home,mom,dad,peter,anna,john,mary,my wife,my husband,my brother,my sister,a taxi,"
    "doctor smith,emergency,david,sarah,michael,lisa,the boss,grandma,tom,james,emma,"
    "susan,robert,the dentist".split(","),
    "music": "music,some music,the next song,the previous song,some jazz,the radio,"
    "my favorite song,"
    "the news,classical music,rock music,a podcast,my playlist,the beatles,something relaxing,"
    "the album again,an audio book,country music,this song again".split(","),
    "room_temperature": ["the temperature", "the heating", "the thermostat", "the climate control"],
    "unit": ["seconds", "minutes", "hours"],
    "level": ["low", "medium", "high", "maximum", "minimum"],
    "more": ["up", "down"],
    "time": [
        "{number:1-12} o'clock",
        "{number:1-12} thirty",
        "{number:1-12} fifteen",
        "{number:1-12} forty five",
        "half past {number:1-12}",
        "quarter to {number:1-12}",
        "noon",
        "midnight",
    ],
    "half_day": ["in the morning", "in the evening", "in the afternoon", "today", "tomorrow"],
    "day": [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "today",
        "tomorrow",
        "tonight",
        "this weekend",
        "next week",
    ],
    "month": [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ],
    "thing": "milk,bread,eggs,butter,coffee,apples,tea,cheese,water,rice,bananas,sugar".split(","),
    "wake": "computer,jarvis,alexa,hey computer,athena,amelia,smart mirror,view glass,snowboy,"
    "hey chatterbox".split(","),
    "please": ["please", "now", "thanks"],
    "lead": ["please", "can you", "could you", "i want to", "would you please"],
}

TEMPLATES = {
    "lights": [
        "[{lead}] turn {on} the {lamp} [please]",
        "turn {on} the {room} {lamp}",
        "turn {on} the {lamp} in the {room}",
        "switch {on} the {room} {lamp}",
        "lights {on}",
        "dim the {room} {lamp}",
        "make the {lamp} brighter",
        "make the {room} {lamp} darker",
        "set the {lamp} to {number:1-100} percent",
        "set the {room} {lamp} to {color}",
        "change the {lamp} to {color}",
        "all lights {on}",
        "turn the {lamp} {on} in the {room}",
        "dim the lights to {number:1-100} percent",
    ],
    "climate": [
        "set [the] temperature to {number:15-30} degrees",
        "set {room_temperature} to {number:15-30}",
        "make it {number:15-30} degrees",
        "turn {more} {room_temperature}",
        "make it warmer",
        "make it colder",
        "make it a bit cooler",
        "set the fan to {level}",
        "turn {more} the fan",
        "set the heater to {level}",
        "i am cold",
        "i am hot",
        "i am too warm",
        "what is the temperature in the {room}",
        "turn {on} the heating in the {room}",
        "set the {room} to {number:15-30} degrees",
        "heat the {room} to {number:15-30} degrees",
        "fan speed {number:1-9}",
        "cool the {room} down",
    ],
    "devices": [
        "turn {on} the {device}",
        "switch {on} the {device}",
        "[{lead}] turn {on} the {device}",
        "turn the {device} {on}",
        "start the {device}",
        "stop the {device}",
        "open the {opening}",
        "close the {opening}",
        "[{lead}] open the {opening}",
        "close the {opening} [{please}]",
        "lock the {opening}",
        "unlock the {opening}",
        "is the {opening} open",
        "{device} {on}",
        "is the {device} still on",
        "turn {on} the {device} in the {room}",
        "{opening} {more}",
    ],
    "media": [
        "play {music}",
        "[{lead}] play {music}",
        "pause [the music]",
        "resume [the music]",
        "stop the music",
        "next [song]",
        "previous [song]",
        "next track",
        "skip this song",
        "repeat this song",
        "volume {more}",
        "turn {more} the volume",
        "turn the volume {more}",
        "set the volume to {number:1-100} [percent]",
        "volume {number:1-10}",
        "mute",
        "unmute",
        "louder",
        "quieter",
        "be quiet",
        "tune to {number:88-108} point {number:1-9}",
        "play channel {number:1-40}",
        "what song is this",
        "play {music} in the {room}",
        "shuffle my playlist",
        "record this show",
        "turn the {device} {more}",
    ],
    "calls": [
        "call {person}",
        "[{lead}] call {person}",
        "dial {digits:4-8}",
        "answer the call",
        "hang up",
        "reject the call",
        "call back",
        "redial",
        "read my messages",
        "send a message to {person}",
        "text {person}",
        "call {person} at home",
        "call {person} on the mobile",
        "end the call",
        "who is calling",
        "video call {person}",
        "do i have new messages",
        "my number is {digits:5-8}",
        "the code is {digits:3-6}",
        "enter {digits:3-6}",
    ],
    "navigation": [
        "navigate to {place}",
        "take me to {place}",
        "drive to {place}",
        "go to {place}",
        "how far is it to {place}",
        "how long does it take to {place}",
        "find {food}",
        "find {food} nearby",
        "where is {place}",
        "show me the way to {place}",
        "zoom in",
        "zoom out",
        "avoid highways",
        "avoid tolls",
        "where am i",
        "show me the map",
        "start navigation",
        "stop navigation",
        "cancel navigation",
        "turn left",
        "turn right",
        "go straight",
        "turn {left_right} in {number:1-9} hundred meters",
        "what is the traffic like",
        "how is the traffic to {place}",
        "is there {food} on the way",
        "move {direction}",
    ],
    "timers": [
        "set a timer for {number:1-59} {unit}",
        "set [the] timer to {number:1-59} {unit}",
        "timer {number:1-59} {unit}",
        "cancel the timer",
        "stop the timer",
        "pause the timer",
        "set an alarm for {time}",
        "set an alarm for {time} {half_day}",
        "wake me up at {time}",
        "wake me at {time} {half_day}",
        "cancel the alarm",
        "snooze",
        "how much time is left",
        "remind me at {time}",
        "remind me in {number:1-59} {unit}",
        "what time is it",
        "what day is it today",
        "remind me to call {person} {day}",
        "add {number:1-30} {unit}",
    ],
    "numbers": [
        "{digits:2-3}",
        "{digits:3-5}",
        "{digits:4-6}",
        "{digits:5-8}",
        "{number:0-100}",
        "number {number:1-100}",
        "{number:10-99} {number:10-99}",
        "{number:1-9} hundred {number:1-99}",
        "{month} {number:1-31}",
        "{number:1-99} percent",
        "{number:1-99} point {number:0-9}",
        "page {number:1-99}",
        "option {number:1-9}",
        "{number:1-9} thousand",
    ],
    "answers": [
        "yes",
        "no",
        "stop",
        "cancel",
        "yes please",
        "no thanks",
        "no thank you",
        "ok",
        "okay",
        "confirm",
        "cancel that",
        "stop it",
        "yes do it",
        "no stop",
        "never mind",
        "go back",
        "go home",
        "help",
        "repeat",
        "repeat that",
        "continue",
        "start",
        "start over",
        "next",
        "previous",
        "select",
        "delete",
        "save",
        "undo",
        "main menu",
        "open the settings",
        "exit",
        "close the app",
        "thank you",
        "hello",
        "goodbye",
        "good morning",
        "good night",
        "good evening",
        "wake up",
        "go to sleep",
        "faster",
        "slower",
        "try again",
        "not now",
        "that is right",
        "that is wrong",
        "wait",
        "wait a moment",
        "i do not know",
        "cancel everything",
        "stop now",
    ],
    "assistant": [
        "what is the weather {day}",
        "will it rain {day}",
        "what is on my calendar {day}",
        "do i need an umbrella {day}",
        "how warm is it outside",
        "add {thing} to the shopping list",
        "put {thing} and {thing} on the list",
        "take a picture",
        "start recording",
        "stop recording",
        "check the battery",
        "how much fuel is left",
        "lock the doors",
        "unlock the doors",
        "start the engine",
        "stop the engine",
        "tell me a joke",
        "what can you do",
        "read the news",
        "cruise control {on}",
        "it is too loud",
        "it is too dark",
        "speed up",
        "slow down",
        "set the speed to {number:20-130}",
        "increase the speed",
        "clean the {room}",
        "what is {number:1-20} plus {number:1-20}",
        "what is {number:1-20} times {number:1-20}",
        "turn {on} cruise control",
        "{wake} what time is it",
        "{wake} stop",
        "{wake} help me",
        "where is my phone",
        "good morning {wake}",
    ],
}
SLOTS["left_right"] = ["left", "right"]
SLOTS["direction"] = ["forward", "backward", "left", "right", "up", "down"]

DRILL_WORDS = sorted(
    set(DIGITS)
    | set(COMMANDS)
    | set(
        "bed bird cat dog happy house marvin sheila tree wow cancel start pause play next help ok "
        "mute louder quieter forward backward lights temperature volume timer alarm call home "
        "alexa jarvis snowboy athena amelia computer".split()
    )
    | {"smart mirror", "view glass", "hey computer", "hey chatterbox", "thank you"}
)
"""Said alone, by many voices and at many speeds."""


def number_words(value: int) -> str:
    """0 .. 999 in words."""
    if value < 10:
        return DIGITS[value]
    if value < 20:
        return _TEENS[value - 10]
    if value < 100:
        ones = value % 10
        return _TENS[value // 10 - 2] + (f" {DIGITS[ones]}" if ones else "")
    rest = value % 100
    return f"{DIGITS[value // 100]} hundred" + (f" {number_words(rest)}" if rest else "")


def expand(template: str, rng: random.Random) -> str:
    """One random sentence of a template."""
    text = re.sub(r"\[(.*?)\]", lambda part: part[1] if rng.random() < 0.5 else "", template)
    while found := re.search(r"\{(\w+)(?::(\d+)-(\d+))?\}", text):
        name, low, high = found.groups()
        if name == "number":
            value = number_words(rng.randint(int(low), int(high)))
        elif name == "digits":
            value = " ".join(rng.choice(DIGITS) for _ in range(rng.randint(int(low), int(high))))
        else:
            value = rng.choice(SLOTS[name])
        text = text[: found.start()] + value + text[found.end() :]
    return " ".join(text.split())


def split_of_sentence(sentence: str) -> str:
    """`train`, `dev` or `test` by a hash of the words, so every run agrees.

    One or two words cannot be kept out of training and count as `train`.
    """
    if len(sentence.split()) < 3:
        return "train"
    bucket = zlib.crc32(sentence.encode()) % 20
    return "test" if bucket < 3 else "dev" if bucket == 3 else "train"


def random_sentence(rng: random.Random) -> str:
    """One random sentence, every group of templates equally often, sometimes with a wake word."""
    group = rng.choice(sorted(TEMPLATES))
    sentence = expand(rng.choice(TEMPLATES[group]), rng)
    if rng.random() < 0.1:
        sentence = f"{rng.choice(SLOTS['wake'])} {sentence}"
    return sentence
